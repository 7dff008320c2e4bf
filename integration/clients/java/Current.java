import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;

/** The cases that Client plays, and those that take the clients of Kafka 4.4. */
public final class Current {
    private final Client client;

    private Current(Client client) {
        this.client = client;
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        Map<String, Cases.Case> cases = client.cases();
        cases.put("admin", new Current(client)::admin);
        if (!args[2].isEmpty()) {
            cases.put("drafts", new Drafts(client, args[2])::play);
        }
        Cases.play(cases);
    }

    private void admin() throws Exception {
        String name = "admin";
        client.create(name, 3);
        client.produce(name, 30);
        try (KafkaConsumer<String, String> c = client.consumer(name, null); Admin admin = client.adminClient()) {
            c.subscribe(List.of(name));
            Client.read(c, 30);
            c.commitSync();
            Cases.check(admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().size() == 3, "partitions");
            ConsumerGroupDescription d = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            Cases.check(d.groupState() == GroupState.STABLE && d.members().size() == 1, "description " + d);
        }
        try (Admin admin = client.adminClient()) {
            Cases.check(admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(name)), "the group is not listed");
            Map<TopicPartition, OffsetAndMetadata> offsets = admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get();
            long sum = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
            Cases.check(sum == 30, "offsets " + offsets);
            TopicPartition p0 = new TopicPartition(name, 0);
            admin.alterConsumerGroupOffsets(name, Map.of(p0, new OffsetAndMetadata(0))).all().get();
            Cases.check(admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get().get(p0).offset() == 0, "altered offset");
            admin.deleteConsumerGroupOffsets(name, Set.of(p0)).all().get();
            Cases.check(!admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get().containsKey(p0), "deleted offset");
            Cases.check(admin.listOffsets(Map.of(p0, OffsetSpec.latest())).all().get().get(p0).offset() > 0, "end offset");
            admin.deleteConsumerGroups(List.of(name)).all().get();
            Cases.check(admin.listGroups().all().get().stream().noneMatch(g -> g.groupId().equals(name)), "the group is still listed");
            admin.deleteTopics(List.of(name)).all().get();
            Cases.check(!admin.listTopics().names().get().contains(name), "the topic is still listed");
        }
    }
}
