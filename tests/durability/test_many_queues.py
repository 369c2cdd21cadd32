"""Many queues with due events in one moment: the log entries of each, and the state after a restart."""

from tests.harness.replies import Queue, digest, msgs
from tests.harness.server import now_ms, wait_for

QUEUES = 300


def _log(server):
    files = sorted((server.dir / "appendonlydir").glob("*.incr.aof"))
    return b"".join(f.read_bytes() for f in files)


def test_queues_that_are_due_together_have_a_log_entry_each_and_no_transaction(make_server):
    server = make_server(appendonly="yes")
    client = server.client()
    keys = [f"due:{n}" for n in range(QUEUES)]
    # Each consumer waits for some of the queues, so deliveries follow the slices in their log entries.
    waiting = [server.wire() for _ in range(10)]
    at = now_ms() + 500
    for key in keys:
        client.execute_command("DQ.SEND", key, "x", "AT", at)
    for n, wire in enumerate(waiting):
        wire.send("DQ.MFETCH", 30, *keys[n * 30 : n * 30 + 30], "BLOCK", 0)
    for wire in waiting:
        _, (message,) = wire.recv()
        assert msgs([message])[0].attempt == 1
    queues = [Queue(client, key) for key in keys]
    wait_for(lambda: all(q.len("delayed") == 0 for q in queues), 10, "all messages to become due")
    assert sum(q.len("running") for q in queues) == len(waiting)
    log = _log(server)
    assert b"MULTI" not in log
    # The slices of several queues are one command.
    assert b"DQ.OPS\r\n" in log
    before = [digest(client, key) for key in keys]
    server.restart(crash=True)
    client = server.client()
    assert [digest(client, key) for key in keys] == before


def test_queues_of_two_databases_that_are_due_together_are_replicated_to_their_own(make_server):
    server = make_server(appendonly="yes")
    clients = [server.client(db=db) for db in (0, 3)]
    at = now_ms() + 500
    keys = [f"due:{n}" for n in range(40)]
    for key in keys:
        for db, client in enumerate(clients):
            client.execute_command("DQ.SEND", key, f"{db}", "AT", at)
    queues = [Queue(client, key) for key in keys for client in clients]
    wait_for(lambda: all(q.len("delayed") == 0 for q in queues), 10, "all messages to become due")
    before = [digest(client, key) for key in keys for client in clients]
    assert b"MULTI" not in _log(server)
    server.restart(crash=True)
    clients = [server.client(db=db) for db in (0, 3)]
    assert [digest(client, key) for key in keys for client in clients] == before


def test_leases_of_many_queues_end_with_their_connection_without_a_transaction(make_server):
    server = make_server(appendonly="yes")
    client = server.client()
    keys = [f"bound:{n}" for n in range(QUEUES)]
    wire = server.wire()
    for key in keys:
        client.execute_command("DQ.SEND", key, "x")
        wire.call("DQ.FETCH", key, "BIND", "LEASE", 600_000)
    wire.close()
    queues = [Queue(client, key) for key in keys]
    wait_for(lambda: all(q.len("running") == 0 for q in queues), 10, "all leases to end")
    assert b"MULTI" not in _log(server)


def test_a_tenant_with_many_schedules_leaves_other_queues_their_turns(make_server):
    server = make_server()
    client = server.client()
    for n in range(QUEUES):
        client.execute_command("DQ.SCHEDULE", f"tenant:{n}", "s", "EVERY", 1, "PAYLOAD", "x")
    fired = Queue(client, "tenant:0")
    before = fired.len()
    for _ in range(20):
        client.execute_command("DQ.SEND", "other", "x", "DELAY", 5)
        assert client.execute_command("DQ.FETCH", "other", "BLOCK", 0, "NOACK")
    assert fired.len() > before
