import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The cases of the client matrix, played by Java's KafkaConsumer, KafkaProducer and Admin. It compiles against
 * kafka-clients from 2.5 to 4.4; what needs 4.4 is in Current and Drafts.
 */
public final class Client {
    private final String bootstrap;

    Client(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        Cases.play(new Client(args[0]).cases());
    }

    Map<String, Cases.Case> cases() {
        Map<String, Cases.Case> cases = new LinkedHashMap<>();
        cases.put("produce-consume", this::produceConsume);
        cases.put("static-bounce", this::staticBounce);
        cases.put("fenced", this::fenced);
        cases.put("batch-removal", this::batchRemoval);
        cases.put("transactions", this::transactions);
        return cases;
    }

    private void produceConsume() throws Exception {
        String name = "produce-consume";
        create(name, 4);
        produce(name, 100);
        try (KafkaConsumer<String, String> c = consumer(name, null)) {
            c.subscribe(List.of(name));
            List<ConsumerRecord<String, String>> got = read(c, 100);
            Cases.check(got.size() == 100, got.size() + " records of 100");
            c.commitSync();
            long committed = c.committed(c.assignment()).values().stream().mapToLong(OffsetAndMetadata::offset).sum();
            Cases.check(committed == 100, "committed " + committed);
        }
    }

    private void staticBounce() throws Exception {
        String name = "static-bounce";
        create(name, 4);
        Map<String, KafkaConsumer<String, String>> open = new LinkedHashMap<>();
        try {
            startPair(name, open);
            int generation = open.get("a").groupMetadata().generationId();
            for (String id : List.of("a", "b")) {
                Set<TopicPartition> mine = open.get(id).assignment();
                KafkaConsumer<String, String> other = open.get(id.equals("a") ? "b" : "a");
                Set<TopicPartition> others = other.assignment();
                open.remove(id).close();
                open.put(id, subscribed(name, id));
                Cases.until("instance " + id + " to be back", () -> pollAll(open) && !open.get(id).assignment().isEmpty());
                Cases.check(open.get(id).assignment().equals(mine), id + " has " + open.get(id).assignment() + " instead of " + mine);
                Cases.check(other.assignment().equals(others), "the other member lost " + others);
                Cases.check(open.get(id).groupMetadata().generationId() == generation, "generation " + open.get(id).groupMetadata());
            }
        } finally {
            open.values().forEach(KafkaConsumer::close);
        }
    }

    private void fenced() throws Exception {
        String name = "fenced";
        create(name, 2);
        try (KafkaConsumer<String, String> first = subscribed(name, "a"); KafkaConsumer<String, String> second = subscribed(name, "a")) {
            Cases.until("the first to own the topic", () -> poll(first).assignment().size() == 2);
            Cases.until("the second to own the topic", () -> poll(second).assignment().size() == 2);
            Cases.until("the first to be fenced", () -> {
                poll(second);
                try {
                    poll(first);
                    return false;
                } catch (FencedInstanceIdException e) {
                    return true;
                }
            });
            Cases.check(poll(second).assignment().size() == 2, "the second lost the topic");
        }
    }

    private void batchRemoval() throws Exception {
        String name = "batch-removal";
        create(name, 4);
        Map<String, KafkaConsumer<String, String>> open = new LinkedHashMap<>();
        try {
            startPair(name, open);
        } finally {
            open.values().forEach(KafkaConsumer::close);
        }
        try (Admin admin = adminClient()) {
            Cases.check(admin.describeConsumerGroups(List.of(name)).all().get().get(name).members().size() == 2, "static members left with their close");
            admin.removeMembersFromConsumerGroup(name,
                new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("a"), new MemberToRemove("b")))).all().get();
            ConsumerGroupDescription d = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            Cases.check(d.members().isEmpty(), "after the removal: " + d);
        }
    }

    private void transactions() throws Exception {
        create("transactions-in", 1);
        create("transactions-out", 1);
        produce("transactions-in", 20);
        TopicPartition in = new TopicPartition("transactions-in", 0);
        List<ConsumerRecord<String, String>> records;
        try (KafkaConsumer<String, String> c = consumer("transactions", null); KafkaProducer<String, String> p = producer("transactions")) {
            c.subscribe(List.of(in.topic()));
            records = read(c, 20);
            p.initTransactions();
            for (int half : new int[] {0, 10}) {
                p.beginTransaction();
                for (ConsumerRecord<String, String> r : records.subList(half, half + 10)) {
                    p.send(new ProducerRecord<>("transactions-out", r.key(), r.value()));
                }
                p.sendOffsetsToTransaction(Map.of(in, new OffsetAndMetadata(half + 10)), c.groupMetadata());
                if (half == 0) {
                    p.commitTransaction();
                } else {
                    p.flush();
                    p.abortTransaction();
                }
            }
            long committed = c.committed(Set.of(in)).get(in).offset();
            Cases.check(committed == 10, "committed offset " + committed);
        }
        produce("transactions-out", 1); // marks the end for the reader
        try (KafkaConsumer<String, String> c = consumer("transactions-reader", null)) {
            c.assign(List.of(new TopicPartition("transactions-out", 0)));
            List<String> got = read(c, 11).stream().map(ConsumerRecord::value).toList();
            List<String> want = new ArrayList<>();
            records.subList(0, 10).forEach(r -> want.add(r.value()));
            want.add("value-0");
            Cases.check(got.equals(want), "read committed: " + got);
        }
    }

    /** Starts the instances a and b and waits until they share the topic's four partitions. */
    private void startPair(String name, Map<String, KafkaConsumer<String, String>> open) throws Exception {
        open.put("a", subscribed(name, "a"));
        open.put("b", subscribed(name, "b"));
        Cases.until("two members with two partitions each",
            () -> pollAll(open) && open.values().stream().allMatch(c -> c.assignment().size() == 2)
                && open.get("a").groupMetadata().generationId() == open.get("b").groupMetadata().generationId());
        Set<TopicPartition> all = open.values().stream().flatMap(c -> c.assignment().stream()).collect(Collectors.toSet());
        Cases.check(all.size() == 4, "assigned " + all);
    }

    KafkaConsumer<String, String> subscribed(String name, String instance) {
        KafkaConsumer<String, String> c = consumer(name, instance);
        c.subscribe(List.of(name));
        return c;
    }

    static KafkaConsumer<String, String> poll(KafkaConsumer<String, String> c) {
        c.poll(Duration.ofMillis(50));
        return c;
    }

    static boolean pollAll(Map<String, KafkaConsumer<String, String>> open) {
        open.values().forEach(Client::poll);
        return true;
    }

    static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> c, int n) throws Exception {
        List<ConsumerRecord<String, String>> got = new ArrayList<>();
        Cases.until(n + " records", () -> {
            c.poll(Duration.ofMillis(100)).forEach(got::add);
            return got.size() >= n;
        });
        return got;
    }

    void create(String topic, int partitions) throws Exception {
        try (Admin admin = adminClient()) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
    }

    void produce(String topic, int n) throws Exception {
        try (KafkaProducer<String, String> p = producer(null)) {
            for (int i = 0; i < n; i++) {
                p.send(new ProducerRecord<>(topic, "key-" + i, "value-" + i));
            }
            p.flush();
        }
    }

    Admin adminClient() {
        return Admin.create(config());
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        Properties p = config();
        if (transactionalId != null) {
            p.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId);
        }
        return new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consumer(String group, String instance) {
        return consumer(group, instance, 1_500_000);
    }

    KafkaConsumer<String, String> consumer(String group, String instance, int session) {
        Properties p = config();
        p.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        p.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, session);
        p.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 500);
        p.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        p.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        p.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        if (instance != null) {
            p.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, instance);
        }
        return new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
    }

    private Properties config() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        return p;
    }
}
