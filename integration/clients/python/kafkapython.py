"""The cases of the client matrix, played by kafka-python."""

import sys

from common import check, play, until
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import MemberToRemove, OffsetSpec
from kafka.errors import FencedInstanceIdError
from kafka.structs import OffsetAndMetadata

BOOTSTRAP = sys.argv[1]
ADMIN = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def create(topic, partitions):
    ADMIN.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})


def produce(topic, n):
    p = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    for i in range(n):
        p.send(topic, key=b"key-%d" % i, value=b"value-%d" % i)
    p.flush(30)
    p.close()


def consumer(group, instance=None, topic=None):
    c = KafkaConsumer(
        bootstrap_servers=BOOTSTRAP, group_id=group, group_instance_id=instance, session_timeout_ms=1_500_000,
        heartbeat_interval_ms=500, auto_offset_reset="earliest", enable_auto_commit=False, isolation_level="read_committed")
    if topic:
        c.partitions_for_topic(topic)  # a leader that joins before it knows the topic assigns nothing, and joins again
        c.subscribe([topic])
    return c


def poll(c):
    """Returns the records at hand. An assignment that arrives just when poll gives up is lost, so it gets some time."""
    return [r for records in c.poll(timeout_ms=500).values() for r in records]


def owned(c):
    poll(c)
    return {p.partition for p in c.assignment()}


def read(c, n):
    got = []

    def enough():
        got.extend(poll(c))
        return len(got) >= n

    until(f"{n} records", enough)
    return got


def offsets_of(group):
    return ADMIN.list_group_offsets({group: None})[group]


def produce_consume():
    name = "produce-consume"
    create(name, 4)
    produce(name, 100)
    c = consumer(name, topic=name)
    check(len(read(c, 100)) == 100, "records")
    c.commit()
    committed = sum(c.committed(p) or 0 for p in c.assignment())
    check(committed == 100, f"committed {committed}")
    c.close()


def admin():
    name = "admin"
    create(name, 3)
    produce(name, 30)
    c = consumer(name, topic=name)
    read(c, 30)
    c.commit()
    topics = ADMIN.describe_topics([name])
    check(len(topics[0]["partitions"]) == 3, f"partitions {topics}")
    d = ADMIN.describe_groups([name])[name]
    check(d["group_state"] == "Stable" and len(d["members"]) == 1, f"description {d}")
    c.close()
    check(name in [g["group_id"] for g in ADMIN.list_groups()], "the group is not listed")
    check(sum(o.offset for o in offsets_of(name).values()) == 30, f"offsets {offsets_of(name)}")
    zero = TopicPartition(name, 0)
    ADMIN.alter_group_offsets(name, {zero: OffsetAndMetadata(0, "", -1)})
    check(offsets_of(name)[zero].offset == 0, "altered offset")
    ADMIN.delete_group_offsets(name, [zero])
    check(zero not in offsets_of(name), "deleted offset")
    check(ADMIN.list_partition_offsets({zero: OffsetSpec.LATEST})[zero].offset > 0, "end offset")
    ADMIN.delete_groups([name])
    check(name not in [g["group_id"] for g in ADMIN.list_groups()], "the group is still listed")
    ADMIN.delete_topics([name])
    check(name not in ADMIN.list_topics(), "the topic is still listed")


def start_pair(name):
    members = {"a": consumer(name, "a", name)}
    until("the first member to own the topic", lambda: len(owned(members["a"])) == 4)
    members["b"] = consumer(name, "b", name)
    share(members)
    return members


def share(members):
    # poll returns nothing before the member is in the group again, and a group forms only while all poll
    until("two partitions each", lambda: all([len(owned(c)) == 2 for c in members.values()]))
    check(owned(members["a"]) | owned(members["b"]) == {0, 1, 2, 3}, "assignments overlap")


def generation(c):
    return c.group_metadata().generation_id


def static_bounce():
    name = "static-bounce"
    create(name, 4)
    members = start_pair(name)
    before = generation(members["a"])
    for instance, other in (("a", "b"), ("b", "a")):
        mine, others = owned(members[instance]), owned(members[other])
        members[instance].close()
        members[instance] = consumer(name, instance, name)
        until(f"instance {instance} to be back", lambda: all([owned(c) for c in members.values()]))
        check(owned(members[instance]) == mine, f"{instance} has {owned(members[instance])} instead of {mine}")
        check(owned(members[other]) == others, "the other member's assignment was touched")
        check({generation(c) for c in members.values()} == {before}, "the generation has changed")
    for c in members.values():
        c.close()


def fenced():
    name = "fenced"
    create(name, 2)
    produce(name, 10)
    first = consumer(name, "a", name)
    read(first, 10)
    second = consumer(name, "a", name)
    until("the second to own the topic", lambda: len(owned(second)) == 2)

    def told():
        check(len(owned(second)) == 2, "the second lost the topic")
        try:
            first.commit()  # its heartbeats end in silence; a commit tells
            return False
        except FencedInstanceIdError:
            return True

    until("the first to be fenced", told)
    second.close()
    first.close()


def batch_removal():
    name = "batch-removal"
    create(name, 4)
    for c in start_pair(name).values():
        c.close()
    check(len(ADMIN.describe_groups([name])[name]["members"]) == 2, "static members left with their close")
    answer = ADMIN.remove_group_members(name, [MemberToRemove(group_instance_id=i) for i in ("a", "b")])
    check(all(e.errno == 0 for e in answer.values()) and len(answer) == 2, f"removal {answer}")
    d = ADMIN.describe_groups([name])[name]
    check(d["group_state"] == "Empty" and not d["members"], f"after the removal: {d}")


def transactions():
    create("transactions-in", 1)
    create("transactions-out", 1)
    produce("transactions-in", 20)
    source = TopicPartition("transactions-in", 0)
    c = consumer("transactions", topic=source.topic)
    records = read(c, 20)
    p = KafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id="transactions")
    p.init_transactions()
    for half in (0, 10):
        p.begin_transaction()
        for r in records[half:half + 10]:
            p.send("transactions-out", key=r.key, value=r.value)
        p.send_offsets_to_transaction({source: OffsetAndMetadata(half + 10, "", -1)}, c.group_metadata())
        if half == 0:
            p.commit_transaction()
        else:
            p.flush(30)
            p.abort_transaction()
    check(c.committed(source) == 10, f"committed offset {c.committed(source)}")
    c.close()
    p.close()
    produce("transactions-out", 1)  # marks the end for the reader
    reader = consumer("transactions-reader")
    reader.assign([TopicPartition("transactions-out", 0)])
    got = [r.value for r in read(reader, 11)]
    check(got == [r.value for r in records[:10]] + [b"value-0"], f"read committed: {got}")
    reader.close()


play({
    "produce-consume": produce_consume, "admin": admin, "static-bounce": static_bounce, "fenced": fenced,
    "batch-removal": batch_removal, "transactions": transactions,
})
