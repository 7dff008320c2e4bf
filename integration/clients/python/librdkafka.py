"""The cases of the client matrix, played by librdkafka through confluent-kafka."""

import sys

from common import Limit, check, play, until
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

BOOTSTRAP = {"bootstrap.servers": sys.argv[1]}
ADMIN = AdminClient(BOOTSTRAP)


def done(futures):
    """Waits for the answers of an admin request."""
    return {key: f.result() for key, f in futures.items()}



def create(topic, partitions):
    done(ADMIN.create_topics([NewTopic(topic, partitions, 1)]))
    # Kafka answers before all of its brokers know the topic, and a consumer reports a topic that it does not find
    until("the topic", lambda: len(ADMIN.list_topics(topic).topics[topic].partitions) == partitions)


def produce(topic, n):
    p = Producer(BOOTSTRAP)
    for i in range(n):
        p.produce(topic, key=f"key-{i}", value=f"value-{i}")
    check(p.flush(30) == 0, "records were not acknowledged")


class Member:
    """A consumer with the assignment that its callbacks tell of."""

    def __init__(self, group, instance=None):
        config = {
            **BOOTSTRAP, "group.id": group, "session.timeout.ms": 1_500_000, "max.poll.interval.ms": 1_500_000, "heartbeat.interval.ms": 500,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed",
        }
        if instance:
            config["group.instance.id"] = instance
        self.consumer = Consumer(config)
        self.changes = 0
        self.fenced = False

    def subscribe(self, topic):
        self.consumer.subscribe([topic], on_assign=self._changed, on_revoke=self._changed)
        return self

    def _changed(self, *_):
        self.changes += 1

    def poll(self):
        """Returns a record or None."""
        try:
            m = self.consumer.poll(0.05)
        except KafkaException as e:
            if e.args[0].code() != KafkaError._FATAL:
                raise
            self.fenced = True
            return None
        if m is None:
            return None
        if m.error():
            check(m.error().code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID), str(m.error()))
            self.fenced = True
            return None
        return m

    def owned(self):
        self.poll()
        return {p.partition for p in self.consumer.assignment()}

    def read(self, n):
        got = []

        def enough():
            m = self.poll()
            if m:
                got.append(m)
            return len(got) >= n

        until(f"{n} records", enough)
        return got

    def close(self):
        self.consumer.close()


def produce_consume():
    name = "produce-consume"
    create(name, 4)
    produce(name, 100)
    m = Member(name).subscribe(name)
    check(len(m.read(100)) == 100, "records")
    m.consumer.commit(asynchronous=False)
    committed = sum(p.offset for p in m.consumer.committed(m.consumer.assignment()))
    check(committed == 100, f"committed {committed}")
    m.close()


def admin():
    name = "admin"
    create(name, 3)
    produce(name, 30)
    m = Member(name).subscribe(name)
    m.read(30)
    m.consumer.commit(asynchronous=False)
    check(len(ADMIN.list_topics(name).topics[name].partitions) == 3, "partitions")
    d = done(ADMIN.describe_consumer_groups([name]))[name]
    check(d.state == ConsumerGroupState.STABLE and len(d.members) == 1, f"description {d.state} {d.members}")
    m.close()
    check(name in [g.group_id for g in ADMIN.list_consumer_groups().result().valid], "the group is not listed")
    offsets = done(ADMIN.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]))[name].topic_partitions
    check(sum(p.offset for p in offsets) == 30, f"offsets {offsets}")
    zero = TopicPartition(name, 0, 0)
    done(ADMIN.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, [zero])]))
    asked = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0)])
    check(done(ADMIN.list_consumer_group_offsets([asked]))[name].topic_partitions[0].offset == 0, "altered offset")
    ends = done(ADMIN.list_offsets({TopicPartition(name, 0): OffsetSpec.latest()}))
    check(all(e.offset > 0 for e in ends.values()), "end offset")
    done(ADMIN.delete_consumer_groups([name]))
    check(name not in [g.group_id for g in ADMIN.list_consumer_groups().result().valid], "the group is still listed")
    done(ADMIN.delete_topics([name]))
    check(name not in ADMIN.list_topics().topics, "the topic is still listed")


def start_pair(name):
    members = {"a": Member(name, "a").subscribe(name)}
    until("the first member to own the topic", lambda: len(members["a"].owned()) == 4)
    members["b"] = Member(name, "b").subscribe(name)
    until("two partitions each", lambda: all([len(m.owned()) == 2 for m in members.values()]))
    check(members["a"].owned() | members["b"].owned() == {0, 1, 2, 3}, "assignments overlap")
    return members


def static_bounce():
    name = "static-bounce"
    create(name, 4)
    members = start_pair(name)
    for instance, other in (("a", "b"), ("b", "a")):
        mine, changes = members[instance].owned(), members[other].changes
        members[instance].close()
        members[instance] = Member(name, instance).subscribe(name)
        until(f"instance {instance} to be back", lambda: all([m.owned() for m in members.values()]))
        check(members[instance].owned() == mine, f"{instance} has {members[instance].owned()} instead of {mine}")
        check(members[other].changes == changes, "the other member's assignment was touched")
    for m in members.values():
        m.close()


def fenced():
    name = "fenced"
    create(name, 2)
    first = Member(name, "a").subscribe(name)
    until("the first to own the topic", lambda: len(first.owned()) == 2)
    second = Member(name, "a").subscribe(name)
    until("the second to own the topic", lambda: len(second.owned()) == 2)
    until("the first to be fenced", lambda: second.owned() and (first.poll() or first.fenced))
    check(len(second.owned()) == 2 and not second.fenced, "the second lost the topic")
    second.close()
    first.close()


def batch_removal():
    if not hasattr(AdminClient, "remove_members_from_consumer_group"):
        raise Limit("no admin request that removes members by instance id")
    raise AssertionError("the client can remove members by now: play the case")


def transactions():
    create("transactions-in", 1)
    create("transactions-out", 1)
    produce("transactions-in", 20)
    m = Member("transactions").subscribe("transactions-in")
    records = m.read(20)
    p = Producer({**BOOTSTRAP, "transactional.id": "transactions"})
    p.init_transactions(30)
    for half in (0, 10):
        p.begin_transaction()
        for r in records[half:half + 10]:
            p.produce("transactions-out", key=r.key(), value=r.value())
        p.send_offsets_to_transaction([TopicPartition("transactions-in", 0, half + 10)], m.consumer.consumer_group_metadata(), 30)
        if half == 0:
            p.commit_transaction(30)
        else:
            check(p.flush(30) == 0, "records were not acknowledged")
            p.abort_transaction(30)
    committed = m.consumer.committed([TopicPartition("transactions-in", 0)])[0].offset
    check(committed == 10, f"committed offset {committed}")
    m.close()
    produce("transactions-out", 1)  # marks the end for the reader
    reader = Member("transactions-reader")
    reader.consumer.assign([TopicPartition("transactions-out", 0, 0)])
    got = [r.value() for r in reader.read(11)]
    check(got == [r.value() for r in records[:10]] + [b"value-0"], f"read committed: {got}")
    reader.close()


play({
    "produce-consume": produce_consume, "admin": admin, "static-bounce": static_bounce, "fenced": fenced,
    "batch-removal": batch_removal, "transactions": transactions,
})
