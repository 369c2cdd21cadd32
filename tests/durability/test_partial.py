"""Bulk operations that a failover ends."""

import re

from tests.harness.scene import Scene
from tests.harness.server import wait_for
from tests.harness.wire import Error

MANY = 30_000


def test_a_redrive_that_a_failover_ends_tells_how_much_was_done(replica_pair, key):
    primary, replica = replica_pair.primary, replica_pair.replica
    q = Scene(primary.client(), key, "LEASE", 10**9)
    for _ in range(0, MANY, 1000):
        q.do("MSEND", 1000, *[b"x"] * 1000)
        q.nack(*[m.receipt for m in q.fetch("COUNT", 1000)], "FATAL")
    replica_pair.wait_sync()
    with primary.wire() as w, primary.wire() as other:
        w.send("DQ.REDRIVE", key, "ALL")
        wait_for(lambda: other.call("DQ.LEN", key, "ready"), what="the first of them")
        other.ok("FAILOVER")
        reply = w.recv()
        wait_for(lambda: replica_pair.role(replica) == "master", what="the failover")
    done = MANY
    if isinstance(reply, Error):
        found = re.match("PARTIAL ([0-9]+) .*failover", reply)
        assert found, reply
        done = int(found[1])
    there = Scene.over(replica.client(), key)
    assert (there.len("ready"), there.len("dead")) == (done, MANY - done)
