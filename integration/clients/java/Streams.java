import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/** The cases of the client matrix, played by Kafka Streams: a word count with a repartition topic and a store. */
public final class Streams {
    private final String bootstrap;
    private final Path state;

    Streams(String bootstrap, Path state) {
        this.bootstrap = bootstrap;
        this.state = state;
    }

    public static void main(String[] args) throws Exception {
        Streams s = new Streams(args[0], Path.of(args[1]));
        Map<String, Cases.Case> cases = new LinkedHashMap<>();
        cases.put("produce-consume", s::produceConsume);
        cases.put("static-bounce", s::staticBounce);
        cases.put("fenced", s::fenced);
        cases.put("batch-removal", s::batchRemoval);
        cases.put("transactions", s::transactions);
        cases.put("killed", new Killed(s, args[0], args[1])::play);
        Cases.play(cases);
    }

    private static final class Instance {
        final KafkaStreams streams;
        final AtomicInteger rebalances = new AtomicInteger();
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        Instance(Topology topology, Properties config, StreamThreadExceptionResponse response) {
            streams = new KafkaStreams(topology, config);
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.REBALANCING) {
                    rebalances.incrementAndGet();
                }
            });
            streams.setUncaughtExceptionHandler(e -> {
                failure.set(e);
                return response;
            });
            streams.start();
        }

        Set<String> tasks() {
            return streams.metadataForLocalThreads().stream().flatMap(t -> t.activeTasks().stream())
                .map(t -> t.taskId().toString()).collect(Collectors.toCollection(TreeSet::new));
        }

        boolean runs() {
            return streams.state() == KafkaStreams.State.RUNNING && !tasks().isEmpty();
        }

        void close() {
            streams.close(Duration.ofSeconds(20));
        }
    }

    private void produceConsume() throws Exception {
        String name = "produce-consume";
        Instance i = start(name, null);
        try {
            Map<String, Long> counts = new LinkedHashMap<>();
            try (KafkaConsumer<String, Long> c = reader(name + "-counts", new LongDeserializer())) {
                Cases.until("all words counted", () -> {
                    c.poll(Duration.ofMillis(100)).forEach(r -> counts.put(r.key(), r.value()));
                    return counts.values().stream().mapToLong(n -> n).sum() == 200;
                });
            }
            Cases.check(counts.get("word") == 100 && counts.size() == 101, "counts " + counts);
        } finally {
            i.close();
        }
    }

    private void staticBounce() throws Exception {
        String name = "static-bounce";
        Map<String, Instance> open = startPair(name);
        try {
            for (String id : List.of("a", "b")) {
                Set<String> mine = open.get(id).tasks();
                Instance other = open.get(id.equals("a") ? "b" : "a");
                int rebalances = other.rebalances.get();
                open.get(id).close();
                open.put(id, new Instance(wordCount(name), config(name, id, id), StreamThreadExceptionResponse.SHUTDOWN_CLIENT));
                Cases.until("instance " + id + " to be back", open.get(id)::runs);
                Cases.check(open.get(id).tasks().equals(mine), id + " has " + open.get(id).tasks() + " instead of " + mine);
                Cases.check(other.rebalances.get() == rebalances, "the other instance went through a rebalance");
            }
        } finally {
            open.values().forEach(Instance::close);
        }
    }

    private void fenced() throws Exception {
        String name = "fenced";
        Instance first = start(name, "a");
        Instance second = null;
        try {
            Cases.until("the first to run", first::runs);
            second = new Instance(wordCount(name), config(name, "a", "another-disk"), StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
            Cases.until("the second to run", second::runs);
            Cases.until("the first to be fenced", () -> first.failure.get() != null);
            Throwable cause = first.failure.get();
            while (cause.getCause() != null && !(cause instanceof FencedInstanceIdException)) {
                cause = cause.getCause();
            }
            Cases.check(cause instanceof FencedInstanceIdException, "the first was not fenced but: " + first.failure.get());
            Cases.until("the first to stop", () -> first.streams.state() == KafkaStreams.State.ERROR);
            Cases.check(second.runs(), "the second does not run any more");
        } finally {
            first.close();
            if (second != null) {
                second.close();
            }
        }
    }

    private void batchRemoval() throws Exception {
        String name = "batch-removal";
        startPair(name).values().forEach(Instance::close);
        try (Admin admin = Admin.create(common())) {
            ConsumerGroupDescription before = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            Cases.check(before.members().size() == 2, "static members left with their close: " + before);
            // without names it removes all members, with one request that names them
            admin.removeMembersFromConsumerGroup(name, new RemoveMembersFromConsumerGroupOptions()).all().get();
            ConsumerGroupDescription after = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            Cases.check(after.members().isEmpty(), "after the removal: " + after);
        }
    }

    /** Under exactly-once a thread dies in the middle of its transaction; what it wrote must not count. */
    private void transactions() throws Exception {
        create("transactions-in", 1);
        create("transactions-out", 1);
        produce("transactions-in", 20);
        AtomicBoolean failed = new AtomicBoolean();
        AtomicBoolean last = new AtomicBoolean();
        StreamsBuilder b = new StreamsBuilder();
        b.stream("transactions-in", Consumed.with(Serdes.String(), Serdes.String())).mapValues(v -> {
            if (v.endsWith("-15") && failed.compareAndSet(false, true)) {
                awaitOutput();
                throw new IllegalStateException("a failure on purpose");
            }
            last.compareAndSet(false, v.endsWith("-19"));
            return v;
        }).to("transactions-out", Produced.with(Serdes.String(), Serdes.String()));
        Properties config = config("transactions", null, "transactions");
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", 30_000); // so that the failure meets an open transaction
        config.put("producer.transaction.timeout.ms", 60_000);
        config.put("session.timeout.ms", 6_000); // the failed thread does not leave the group, it has to expire
        Instance i = new Instance(b.build(), config, StreamThreadExceptionResponse.REPLACE_THREAD);
        try {
            Cases.until("a thread to fail", () -> i.failure.get() != null);
            Cases.until("another to get to the end", last::get); // the close commits
        } finally {
            i.close();
        }
        produce("transactions-out", 1); // marks the end for the reader
        List<String> got = new ArrayList<>();
        try (KafkaConsumer<String, String> c = reader("transactions-out", new StringDeserializer())) {
            Cases.until("the mark", () -> {
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) {
                    got.add(r.value());
                }
                return got.size() > 1 && got.get(got.size() - 1).equals("word value-0");
            });
        }
        Cases.check(new HashSet<>(got).size() == got.size() - 1, "read committed: " + got);
    }

    /** Waits until the output has records, so that there is something to abort. */
    private void awaitOutput() {
        TopicPartition out = new TopicPartition("transactions-out", 0);
        try (Admin admin = Admin.create(common())) {
            Cases.until("output", () -> admin.listOffsets(Map.of(out, OffsetSpec.latest())).all().get().get(out).offset() > 0);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Creates the topics, produces the lines and starts an instance. */
    private Instance start(String name, String instance) throws Exception {
        create(name, 4);
        create(name + "-counts", 4);
        produce(name, 100);
        return new Instance(wordCount(name), config(name, instance, "a"), StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
    }

    /** Starts the instances a and b and waits until they share the eight tasks and have read everything. */
    private Map<String, Instance> startPair(String name) throws Exception {
        Map<String, Instance> open = new LinkedHashMap<>();
        open.put("a", start(name, "a"));
        open.put("b", new Instance(wordCount(name), config(name, "b", "b"), StreamThreadExceptionResponse.SHUTDOWN_CLIENT));
        Cases.until("four tasks each", () -> open.values().stream().allMatch(i -> i.runs() && i.tasks().size() == 4));
        return open;
    }

    static Topology wordCount(String name) {
        StreamsBuilder b = new StreamsBuilder();
        b.stream(name, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().to(name + "-counts", Produced.with(Serdes.String(), Serdes.Long()));
        return b.build();
    }

    Properties config(String application, String instance, String disk) {
        Properties p = common();
        p.put("application.id", application);
        p.put("state.dir", state.resolve(disk).toString());
        p.put("num.stream.threads", 1);
        p.put("session.timeout.ms", 1_500_000);
        p.put("heartbeat.interval.ms", 500);
        p.put("commit.interval.ms", 200);
        p.put("auto.offset.reset", "earliest");
        // nobody warms up: with these the first assignment is the last one
        p.put("acceptable.recovery.lag", Long.MAX_VALUE);
        p.put("probing.rebalance.interval.ms", 3_600_000);
        if (instance != null) {
            p.put("group.instance.id", instance);
        }
        return p;
    }

    Properties common() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        return p;
    }

    void create(String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(common())) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
    }

    void produce(String topic, int n) {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(common(), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < n; i++) {
                p.send(new ProducerRecord<>(topic, "key-" + i, "word value-" + i));
            }
            p.flush();
        }
    }

    /** Reads a whole topic, without a group. */
    <V> KafkaConsumer<String, V> reader(String topic, Deserializer<V> values) {
        Properties p = common();
        p.put("isolation.level", "read_committed");
        KafkaConsumer<String, V> c = new KafkaConsumer<>(p, new StringDeserializer(), values);
        c.assign(c.partitionsFor(topic).stream().map(i -> new TopicPartition(topic, i.partition())).toList());
        c.seekToBeginning(c.assignment());
        return c;
    }
}
