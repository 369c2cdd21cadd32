"""Log entries that a replica or a restart cannot apply are counted and told, and data of other versions is refused."""

import pytest
import redis

from tests.harness.aof import increments
from tests.harness.crc64 import sealed
from tests.harness.replies import Queue
from tests.harness.server import wait_for

# A SEND of a version that is not known yet.
NEWER = b"\xe2" + bytes(12)


def resp(*words) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def figures(server) -> tuple:
    info = server.client().info("dq_module")
    return info["dq_unapplied_entries"], info["dq_internal_errors"]


def told(server) -> list:
    start = "dq: a log entry could not be applied: "
    return [line.split(start, 1)[1] for line in server.log().splitlines() if start in line]


def test_entries_of_a_log_that_cannot_be_applied_are_counted_and_told_with_key_verb_and_reason(make_server):
    server = make_server(appendonly="yes", aof_use_rdb_preamble="no")
    q = Queue(server.client(), "q")
    q.send("a", "ID", "a")
    assert figures(server) == (0, 0)
    server.stop()
    *_, log = increments(server)
    with log.open("ab") as file:
        file.write(resp("DQ.ACK", "gone", 1))
        file.write(resp("DQ.OP", "q", NEWER))
        file.write(resp("SET", "text", "x") + resp("DQ.ACK", "text", 1))
        file.write(resp("DQ.ACK", "q", "no-receipt"))
    server.start()
    assert figures(server) == (4, 0)
    assert told(server) == [
        "DQ.ACK 'gone': the key has no queue, and the log entry does not create one",
        "DQ.OP 'q': it was written by a newer version of the module",
        "DQ.ACK 'text': the key holds a value of another type",
        told(server)[3],
    ]
    assert told(server)[3].startswith("DQ.ACK 'q': ") and "no-receipt" in told(server)[3]
    assert q.len() == 1
    server.client().delete("text")


def test_a_replica_counts_what_it_cannot_apply_and_tells_ten_times_a_minute(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    before, lines = figures(replica)[0], len(told(replica))
    q = Queue(primary.client(), "q")
    q.do("MSEND", 40, *range(40))
    receipts = [message.receipt for message in q.fetch("COUNT", 40)]
    replica_pair.wait_sync()
    replica.client().config_set("replica-read-only", "no")
    replica.client().delete("q")
    replica.client().config_set("replica-read-only", "yes")
    for receipt in receipts:
        q.ack(receipt)
    wait_for(lambda: figures(replica)[0] == before + 40, 10, "the entries")
    assert figures(primary)[0] == 0
    assert 0 < len(told(replica)) - lines <= 10
    assert told(replica)[-1].startswith("DQ.ACK 'q': the key has no queue")
    q.do("PURGE")


def test_a_replica_counts_entries_that_change_nothing_in_another_queue_of_that_name(replica_pair):
    primary, replica = replica_pair.primary, replica_pair.replica
    q = Queue(primary.client(), "q")
    q.do("MSEND", 8, *range(8))
    taken = q.fetch("COUNT", 6)
    replica_pair.wait_sync()
    replica.client().config_set("replica-read-only", "no")
    replica.client().delete("q")
    Queue(replica.client(), "q").send("other")
    replica.client().config_set("replica-read-only", "yes")
    before = figures(replica)[0]
    receipts = [message.receipt for message in taken]
    q.ack(receipts[0])
    q.do("ACK", receipts[1], "RESULT", "r")
    q.nack(receipts[2])
    q.do("NACK", receipts[3], "FATAL")
    q.touch(60_000, receipts[4])
    q.do("CANCEL", taken[5].id)
    wait_for(lambda: figures(replica)[0] == before + 6, 10, "the entries")
    assert figures(primary)[0] == 0
    q.do("PURGE")


@pytest.mark.parametrize(("version", "age"), [(0, "older"), (2, "older"), (6, "older"), (7, "newer"), (255, "newer")])
def test_data_of_another_version_is_refused_as_older_or_newer(make_server, version, age):
    server = make_server()
    Queue(server.client(), "q").send("a")
    dump = server.client().dump("q")
    # The version is in the lowest bits of the type's number.
    assert dump[9] == 1
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        server.client().restore("copy", 0, sealed(dump[:9] + bytes([dump[9] - 1 + version]) + dump[10:-8]))
    assert f"a queue cannot be loaded: it was written by {'an' if age == 'older' else 'a'} {age} version" in server.log()
