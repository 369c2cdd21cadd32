"""DQ.NFETCH in a cluster: it takes messages of its node, and its waiters notice slots that move."""

import time

from tests.harness.replies import msgs
from tests.harness.scene import text
from tests.harness.server import wait_for
from tests.harness.wire import Error


def keys_by_node(cluster, partitions=8):
    """The queues of the family f on each node, by the index of the node."""
    names = [name.decode() for name in cluster.nodes[0].wire().ok("DQ.PARTITIONS", "f", partitions)]
    return [[name for name in names if cluster.owner(name) is node] for node in cluster.nodes]


def taken(w):
    keys = []
    while (reply := w.ok("DQ.NFETCH", "f")) is not None:
        assert len(msgs(reply[1])) == 1
        keys.append(reply[0].decode())
    return keys


def test_each_node_gives_what_lies_on_it_and_redirects_nobody(cluster):
    by_node = keys_by_node(cluster)
    for node, names in zip(cluster.nodes, by_node):
        with node.wire() as w:
            for name in names:
                w.ok("DQ.SEND", name, "x")
    for node, names in zip(cluster.nodes, by_node):
        with node.wire() as w:
            assert text(w.ok("DQ.NINFO", "f"))["queues"] == len(names)
            assert sorted(taken(w)) == sorted(names)
            assert isinstance(w.ok("DQ.ROUTE", "f", 8, "g"), bytes)


def test_a_waiter_is_served_by_any_queue_of_its_node(cluster):
    by_node = keys_by_node(cluster)
    for node, names in zip(cluster.nodes, by_node):
        for name in names[:2]:
            with node.wire() as w, node.wire() as blocked:
                blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
                node.wait_blocked(1)
                w.ok("DQ.SEND", name, "x")
                assert blocked.recv()[0].decode() == name


def test_waiters_get_null_when_the_slots_of_their_node_change(cluster):
    source, target = cluster.nodes[0], cluster.nodes[1]
    name = keys_by_node(cluster)[0][0]
    with source.wire() as w:
        w.ok("DQ.SEND", name, "a")
        assert taken(w) == [name]
    waiters = []
    for node in (source, target):
        blocked = node.wire()
        blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
        node.wait_blocked(1)
        waiters.append(blocked)
    slot = cluster.slot(name)
    cluster.move_slot(slot, source, target)
    try:
        assert [blocked.recv(timeout=10) for blocked in waiters] == [None, None]
        with target.wire() as w, source.wire() as old:
            w.ok("DQ.SEND", name, "b")
            assert taken(w) == [name]
            assert taken(old) == []
    finally:
        cluster.move_slot(slot, target, source)


def test_a_waiter_at_the_new_node_gets_the_messages_of_a_queue_that_comes(cluster):
    source, target = cluster.nodes[0], cluster.nodes[1]
    name = keys_by_node(cluster)[0][0]
    with source.wire() as w:
        w.ok("DQ.SEND", name, "a")
        # The node may still have to learn that an earlier test has given the slot back.
        wait_for(lambda: taken(w) == [name], what="the message")
        w.ok("DQ.SEND", name, "b")
    blocked = target.wire()
    # A null reply also reports the slots that an earlier test has moved, some time after they have moved.
    assert blocked.ok("DQ.NFETCH", "f", "BLOCK", 1000) is None
    blocked.send("DQ.NFETCH", "f", "BLOCK", 0)
    target.wait_blocked(1)
    slot = cluster.slot(name)
    cluster.move_slot(slot, source, target)
    try:
        # The message, and not null.
        assert blocked.recv()[0].decode() == name
    finally:
        cluster.move_slot(slot, target, source)


def test_a_node_that_the_others_do_not_hear_gives_nothing(cluster):
    """Another node may have its slots by then."""
    node, *others = cluster.nodes
    name = keys_by_node(cluster)[0][0]
    with node.wire() as w:
        w.ok("DQ.SEND", name, "a")
        w.ok("DQ.SEND", name, "b")
        wait_for(lambda: w.ok("DQ.NFETCH", "f") is not None, what="a message")
        for other in others:
            other.pause()
        try:
            wait_for(lambda: "cluster_state:fail" in w.ok("CLUSTER", "INFO").decode(), 30, "the node to notice")
            # The module looks four times a second.
            time.sleep(0.5)
            assert w.ok("DQ.NFETCH", "f") is None
        finally:
            for other in others:
                other.resume()
        wait_for(cluster.is_ready, 30, "the cluster")
        wait_for(lambda: w.ok("DQ.NFETCH", "f", "BLOCK", 1) is not None, 10, "the messages")


def test_a_script_may_not_call_it_but_a_transaction_may(cluster):
    with cluster.nodes[0].wire() as w:
        reply = w.call("EVAL", "return redis.call('DQ.NFETCH', 'f')", 0)
        assert isinstance(reply, Error) and "script" in reply
        w.ok("MULTI")
        w.ok("DQ.NFETCH", "f", "BLOCK", 0)
        assert w.ok("EXEC") == [None]
