"""GRACE: when its connection closes, a bound lease ends earlier, and a repeated call gives the old end back."""

import pytest

from tests.harness.replies import Queue, as_map
from tests.harness.server import wait_for

FAR = 600_000


def bound(server, key, *options):
    """A connection with bound leases of 600 s of consumer w and token t, and their receipts."""
    w = server.wire()
    got = w.ok("DQ.FETCH", key, "CONSUMER", "w", "TOKEN", "t", "BIND", *options)
    return w, [m[1] for m in got]


def lease_until(q):
    """The end of the only lease."""
    [record] = q.do("LIST", "running")[1]
    return as_map(record)["lease-until"]


def sent(r, key, lease=FAR):
    """A queue with one message, a."""
    q = Queue(r, key)
    q.do("CREATE", "LEASE", lease)
    q.send("a", "ID", "a")
    return q


def close(w, q, until):
    """Closes a connection, and waits until a lease that lasted until `until` ends earlier."""
    w.close()
    wait_for(lambda: lease_until(q) < until, 5, "the earlier end")


def test_grace_shortens_leases_when_the_connection_closes(server, r, key):
    q = sent(r, key)
    w, [receipt] = bound(server, key, "GRACE", 60_000)
    until = lease_until(q)
    close(w, q, until)
    assert FAR - 61_000 <= until - lease_until(q) <= FAR - 50_000
    assert (q.get("a")["failures"], q.info()["timeouts"]) == (0, 0)
    assert q.ack(receipt) == 1


def test_after_the_grace_the_lease_has_run_out(server, r, key):
    q = sent(r, key)
    w, _ = bound(server, key, "GRACE", 50)
    w.close()
    wait_for(lambda: q.state("a") == "ready", 5, "the end of the lease")
    assert (q.get("a")["failures"], q.info()["timeouts"]) == (1, 1)


def test_grace_never_lengthens_a_lease(server, r, key):
    q = sent(r, key, lease=30_000)
    w, _ = bound(server, key, "GRACE", FAR)
    until = lease_until(q)
    w.close()
    other = server.wire()
    q.send("b", "ID", "b", "PRIORITY", -1)
    other.ok("DQ.FETCH", key, "BIND")
    other.close()
    wait_for(lambda: q.state("b") == "ready", 5, "the end of the other lease")
    assert lease_until(q) == until


def test_a_repeated_call_within_the_grace_gives_the_old_end_back(server, r, key):
    q = sent(r, key)
    w, receipts = bound(server, key, "GRACE", 60_000)
    until = lease_until(q)
    close(w, q, until)
    r.execute_command("DEBUG", "RELOAD")
    assert lease_until(q) < until
    again, same_receipts = bound(server, key, "GRACE", 60_000)
    assert (receipts, lease_until(q)) == (same_receipts, until)
    close(again, q, until)


def test_touch_within_the_grace_is_what_counts(server, r, key):
    q = sent(r, key)
    w, [receipt] = bound(server, key, "GRACE", 60_000)
    until = lease_until(q)
    close(w, q, until)
    assert q.touch(FAR // 2, receipt) == 1
    touched = lease_until(q)
    assert until - FAR // 2 <= touched
    q.fetch("CONSUMER", "w", "TOKEN", "t")
    assert lease_until(q) == touched


def test_grace_0_is_plain_bind(server, r, key):
    q = sent(r, key)
    w, _ = bound(server, key, "GRACE", 0)
    w.close()
    wait_for(lambda: q.state("a") == "ready", 5, "the end of the lease")
    assert q.info()["timeouts"] == 1


@pytest.mark.parametrize("kind", ["RENAME", "MULTI"])
def test_grace_follows_a_renamed_queue(server, r, key, kind):
    q = sent(r, key)
    w, _ = bound(server, key, "GRACE", 60_000)
    until = lease_until(q)
    if kind == "RENAME":
        r.rename(key, key + b":new")
    else:
        r.pipeline().rename(key, key + b":new").execute()
    q = Queue(r, key + b":new")
    close(w, q, until)
