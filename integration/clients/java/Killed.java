import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KafkaStreams;

/**
 * A word count under exactly-once, in two processes of two threads each, with standby tasks: one process restarts, the other
 * one is killed with SIGKILL in the middle of its work and comes back.
 */
public final class Killed {
    private static final String NAME = "killed";
    private static final int LINES = 400; // in each of three parts
    private static final int TASKS = 4, STANDBYS = 2; // of each process; the other one has as many

    private final Streams streams;
    private final String bootstrap;
    private final String state;

    Killed(Streams streams, String bootstrap, String state) {
        this.streams = streams;
        this.bootstrap = bootstrap;
        this.state = state;
    }

    /** One process of the application; it says "ready" when it has its share of active and standby tasks. */
    public static void main(String[] args) throws Exception {
        String id = args[2];
        Properties config = new Streams(args[0], Path.of(args[1])).config(NAME, id, id);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("num.stream.threads", 2);
        config.put("num.standby.replicas", 1);
        config.put("statestore.cache.max.bytes", 0); // every count is written, so that a lost or repeated one shows
        KafkaStreams s = new KafkaStreams(Streams.wordCount(NAME), config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> s.close(Duration.ofSeconds(20))));
        exitWithParent();
        s.start();
        Cases.until("the share of " + id, () -> s.state() == KafkaStreams.State.RUNNING
            && s.metadataForLocalThreads().stream().mapToInt(t -> t.activeTasks().size()).sum() == TASKS
            && s.metadataForLocalThreads().stream().mapToInt(t -> t.standbyTasks().size()).sum() == STANDBYS);
        System.out.println("ready");
    }

    /** Ends the process in order when its parent closes its input or is gone itself. */
    private static void exitWithParent() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException e) {
                e.printStackTrace();
            }
            System.exit(0);
        });
        watch.setDaemon(true);
        watch.start();
    }

    void play() throws Exception {
        streams.create(NAME, 4);
        streams.create(NAME + "-counts", 4);
        streams.produce(NAME, LINES);
        Map<String, Worker> workers = new LinkedHashMap<>();
        try {
            workers.put("a", new Worker("a"));
            workers.put("b", new Worker("b"));
            workers.get("a").awaitReady();
            workers.get("b").awaitReady();

            workers.get("a").stop();
            workers.put("a", new Worker("a"));
            workers.get("a").awaitReady();

            streams.produce(NAME, LINES);
            awaitCounts(LINES + LINES / 4); // it is in the middle of the second part
            workers.get("b").process.destroyForcibly().waitFor(); // SIGKILL
            streams.produce(NAME, LINES);
            workers.put("b", new Worker("b"));
            workers.get("b").awaitReady();
            awaitCounts(3 * LINES);
        } finally {
            for (Worker w : workers.values()) {
                w.stop();
            }
        }
    }

    /**
     * Reads the counts until the word that is in every line has been seen so often. A replay of the input would count each
     * word by one, so whatever was lost, repeated or taken back shows as a count that is not the next one.
     */
    private void awaitCounts(long lines) throws Exception {
        Map<String, Long> counts = new HashMap<>();
        try (KafkaConsumer<String, Long> c = streams.reader(NAME + "-counts", new LongDeserializer())) {
            Cases.until(lines + " lines to be counted", () -> {
                for (ConsumerRecord<String, Long> r : c.poll(Duration.ofMillis(100))) {
                    long before = counts.getOrDefault(r.key(), 0L);
                    Cases.check(r.value() == before + 1, r.key() + " was counted " + r.value() + " times after " + before);
                    counts.put(r.key(), r.value());
                }
                return counts.getOrDefault("word", 0L) >= lines && (lines < 3 * LINES || complete(counts));
            });
        }
    }

    /** Whether the other words, each of them once in each part, are counted too. */
    private static boolean complete(Map<String, Long> counts) {
        return counts.size() == LINES + 1 && counts.entrySet().stream().allMatch(e -> e.getValue() == (e.getKey().equals("word") ? 3L * LINES : 3L));
    }

    /** One process. */
    private final class Worker {
        final Process process;

        Worker(String id) throws IOException {
            String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
            process = new ProcessBuilder(java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dlog4j2.configurationFile=" + System.getProperty("log4j2.configurationFile"),
                "-cp", System.getProperty("java.class.path"), "Killed", bootstrap, state, id)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        }

        void awaitReady() throws Exception {
            BufferedReader out = process.inputReader();
            String line = CompletableFuture.supplyAsync(() -> {
                try {
                    return out.readLine();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }).get(240, TimeUnit.SECONDS);
            Cases.check("ready".equals(line), "a worker ended before it was ready");
        }

        /** Ends it in order, with its static members left in the group. */
        void stop() throws Exception {
            process.outputWriter().close();
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
    }
}
