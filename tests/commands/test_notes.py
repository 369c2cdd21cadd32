"""NOTE on TOUCH and NACK: progress and checkpoints that stay with a message."""

from tests.harness.replies import Manual, as_maps, msgs

LARGEST = b"n" * 65536


def test_a_note_of_touch_is_shown_and_given_to_the_next_attempt(r, key):
    q = Manual(r, key, "LEASE", 100)
    q.send("x", "ID", "a")
    m = q.one("WITHMETA")
    assert m.meta["note"] is None
    assert q.get("a")["note"] is None
    assert q.do("TOUCH", 50, m.receipt, "NOTE", "page 17\r\n\0") == 1
    assert q.get("a")["note"] == b"page 17\r\n\0"
    q.advance(50)
    again = q.one("WITHMETA")
    assert (again.attempt, again.meta["note"]) == (2, b"page 17\r\n\0")
    assert q.touch(50, again.receipt) == 1
    assert q.get("a")["note"] == b"page 17\r\n\0"


def test_a_note_of_nack_is_replaced_and_removed(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt, "NOTE", "one", "ERROR", "e")
    assert (q.get("a")["note"], q.get("a")["error"]) == (b"one", b"e")
    q.nack(q.one().receipt, "SILENT", "NOTE", "two")
    assert q.get("a")["note"] == b"two"
    q.nack(q.one().receipt, "NOTE", "")
    assert q.get("a")["note"] is None


def test_a_note_stays_until_the_message_is_replaced(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    q.send("x", "ID", "a")
    q.nack(q.one().receipt, "FATAL", "NOTE", "here")
    assert q.get("a")["note"] == b"here"
    q.do("REDRIVE", "ALL")
    assert q.get("a")["note"] == b"here"
    q.send("y", "ID", "a", "REPLACE")
    assert q.get("a")["note"] is None
    m = q.one()
    q.do("TOUCH", 5, m.receipt, "NOTE", "last")
    q.ack(m.receipt)
    assert q.get("a")["note"] == b"last"
    [row] = as_maps(q.do("LIST", "finished")[1])
    assert row["note"] == b"last"


def test_several_receipts_get_the_note_and_stale_ones_do_not(r, key):
    q = Manual(r, key)
    for id in "abc":
        q.send(id, "ID", id)
    a, b, c = q.fetch("COUNT", 3)
    q.nack(c.receipt, "DELAY", 10)
    assert q.do("TOUCH", 9, a.receipt, b.receipt, c.receipt, "NOTE", "n") == 2
    assert [q.get(id)["note"] for id in "abc"] == [b"n", b"n", None]


def test_a_note_has_at_most_64_kib(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    assert q.do("TOUCH", 9, receipt, "NOTE", LARGEST) == 1
    before = q.digest()
    assert "NOTE" in q.fails("TOUCH", 9, receipt, "NOTE", LARGEST + b"n")
    assert "NOTE" in q.fails("NACK", receipt, "NOTE", LARGEST + b"n")
    assert "NOTE" in q.fails("TOUCH", 9, receipt, "NOTE")
    assert "NOTE" in q.fails("TOUCH", 9, receipt, "NOTE", "a", "NOTE", "b")
    assert "NOTE" in q.fails("NACK", receipt, "NOTE", "a", "note", "b")
    assert q.digest() == before
    assert q.get("a")["note"] == LARGEST


def test_notes_are_not_refused_for_memory(make_server, key):
    server = make_server()
    q = Manual(server.client(), key)
    q.do("MSEND", 2, "a", "b")
    one, other = (m.receipt for m in q.fetch("COUNT", 2))
    q.client.config_set("maxmemory", "1")
    assert q.do("TOUCH", 9, one, "NOTE", LARGEST) == 1
    assert q.nack(other, "NOTE", LARGEST) == 1


def test_notes_count_in_memory_and_are_freed(r, key):
    q = Manual(r, key)
    q.send("x", "ID", "a")
    receipt = q.one().receipt
    before = r.memory_usage(key, samples=0)
    q.do("TOUCH", 9, receipt, "NOTE", LARGEST)
    assert r.memory_usage(key, samples=0) >= before + len(LARGEST)
    q.do("TOUCH", 9, receipt, "NOTE", "")
    assert r.memory_usage(key, samples=0) < before + 1000


def test_a_note_publishes_an_event(make_server):
    server = make_server(notify_keyspace_events="Ed")
    client = server.client()
    q = Manual(client, "q")
    q.send("x")
    receipt = q.one().receipt
    listener = server.client(protocol=2).pubsub()
    listener.subscribe("__keyevent@0__:dq.noted", "end")
    for _ in range(2):
        listener.get_message(timeout=5)
    q.touch(5, receipt)
    q.do("TOUCH", 5, receipt, "NOTE", "n")
    q.nack(receipt, "NOTE", "")
    q.do("TOUCH", 5, receipt, "NOTE", "stale")
    client.publish("end", "")
    seen = [listener.get_message(timeout=5)["channel"] for _ in range(3)]
    assert seen == [b"__keyevent@0__:dq.noted"] * 2 + [b"end"]


def test_results_of_fetch_go_with_the_acked_receipts(r, key):
    q = Manual(r, key, "RETAIN", 1000)
    for id in "abcd":
        q.send(id, "ID", id)
    a, b = q.fetch("COUNT", 2)
    stale = 7
    given = q.do("FETCH", "RESULTS", 3, "one", "none", "", "ACK", 3, a.receipt, stale, b.receipt)
    assert [m.id for m in msgs(given)] == [b"c"]
    assert [q.get(id)["result"] for id in "ab"] == [b"one", b""]
    c = msgs(given)[0]
    assert [m.id for m in q.fetch("ACK", 1, c.receipt)] == [b"d"]
    assert q.get("c")["result"] is None


def test_results_end_a_wait_and_are_given_when_the_fetch_blocks(server, r3, key):
    q = Manual(r3, key, "RETAIN", 1000)
    q.send("x", "ID", "a")
    m = q.one()
    waiter, worker = server.wire(3), server.wire(3)
    waiter.send("DQ.WAIT", key, "a", 0)
    server.wait_blocked(1)
    worker.send("DQ.FETCH", key, "BLOCK", 0, "ACK", 1, m.receipt, "RESULTS", 1, "done")
    assert waiter.recv(5) == [b"finished", b"done"]
    assert q.get("a")["result"] == b"done"
    q.send("y")
    assert len(msgs(worker.recv(5))) == 1
