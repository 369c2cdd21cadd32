"""The migration of a live HDT3213/delayqueue queue is complete and exact, and can be repeated after a kill."""

import os
import re
import signal
import subprocess
import sys
import uuid

import pytest

from tests.harness.replies import as_map, msgs
from tests.harness.server import ROOT, now_ms, wait_for

SCRIPT = ROOT / "tools" / "migrate_delayqueue.py"


class Library:
    """A queue as the Go library leaves it in Redis."""

    def __init__(self, client, name="orders", prefix="dp", hash_tag=False):
        def braced(stem):
            return f"{{{stem}}}" if hash_tag else stem

        self.client, self.stem, self.payloads = client, braced(f"{prefix}:{name}"), braced(f"dp:{name}")

    def key(self, part):
        return f"{self.stem}:{part}"

    def payload(self, id):
        return f"{self.payloads}:msg:{id}"

    def store(self, payload, retries=3, life=3_600_000) -> str:
        """The payload key and the count of a new message; its id."""
        id = str(uuid.uuid4())
        self.client.set(self.payload(id), payload, px=life)
        if retries is not None:
            self.client.hset(self.key("retry:cnt"), id, retries)
        return id

    def pending(self, payload, due_s, **kwargs):
        id = self.store(payload, **kwargs)
        self.client.zadd(self.key("pending"), {id: due_s})
        return id

    def listed(self, part, payload, **kwargs):
        id = self.store(payload, **kwargs)
        self.client.lpush(self.key(part), id)
        return id

    def unack(self, payload, until_s, **kwargs):
        id = self.store(payload, **kwargs)
        self.client.zadd(self.key("unack"), {id: until_s})
        return id

    def garbage(self, payload):
        id = self.store(payload, retries=None)
        self.client.sadd(self.key("garbage"), id)
        return id

    def left(self) -> set:
        """The messages that are still there, as key names."""
        keys = set(self.client.scan_iter(f"{self.stem}:*")) | set(self.client.scan_iter(f"{self.payloads}:*"))
        return {key.decode() for key in keys}


def command(server, *options):
    url = f"redis://127.0.0.1:{server.port}"
    return [sys.executable, str(SCRIPT), "--from", url, "--queue", "orders", "--key", "new", *map(str, options)]


def move(server, *options, code=0):
    """Runs the script to its end; place -> the numbers of its table."""
    done = subprocess.run(command(server, *options), capture_output=True, text=True, timeout=50)
    assert done.returncode == code, f"exit code {done.returncode}:\n{done.stdout}\n{done.stderr}"
    table = {}
    for line in done.stdout.splitlines():
        if row := re.fullmatch(r"(\w+)((?:\s+[\d,]+){8})", line):
            numbers = [int(n.replace(",", "")) for n in row[2].split()]
            names = ("found", "moved", "there", "gone", "intercepted", "given_up", "in_use", "held")
            table[row[1]] = dict(zip(names, numbers))
    return table


def row(client, id):
    return as_map(client.execute_command("DQ.GET", "new", id))


@pytest.fixture
def client(server):
    return server.client()


def test_messages_of_every_state_move_with_their_time_and_retries(server, client):
    old = Library(client)
    later = now_ms() // 1000 + 1800
    pending = old.pending(b"\x00later\xff", later, retries=5)
    overdue = old.pending(b"overdue", now_ms() // 1000 - 60, retries=2)
    first, second = old.listed("ready", b"first"), old.listed("ready", b"second")
    retry = old.listed("retry", b"retry", retries=1)
    # The library counts a failure of a message that is being handled when it takes the message back.
    out = old.unack(b"out", now_ms() // 1000 - 1, retries=3)
    last_try = old.unack(b"last try", now_ms() // 1000 - 1, retries=0)
    table = move(server)
    assert [table[place]["moved"] for place in ("ready", "pending", "retry", "unack", "garbage")] == [2, 2, 1, 2, 0]
    assert row(client, pending)["due-at"] == later * 1000
    assert row(client, pending)["payload"] == b"\x00later\xff"
    left = {id: row(client, id)["retries-left"] for id in (pending, overdue, first, retry, out, last_try)}
    assert left == {pending: 5, overdue: 2, first: 3, retry: 1, out: 2, last_try: 0}
    assert client.execute_command("DQ.LEN", "new", "ready") == 6
    order = [m.id.decode() for m in msgs(client.execute_command("DQ.FETCH", "new", "COUNT", 10))]
    assert order == [first, second, overdue, retry, *sorted([out, last_try])]
    assert old.left() == set()


@pytest.mark.parametrize("layout", [{"hash_tag": True}, {"prefix": "shop"}, {"prefix": "shop", "hash_tag": True}])
def test_other_key_layouts_can_be_named(server, client, layout):
    old = Library(client, **layout)
    id = old.pending(b"x", now_ms() // 1000 + 60)
    options = ["--prefix", layout.get("prefix", "dp")] + ["--hash-tag"] * layout.get("hash_tag", False)
    assert move(server, *options)["pending"]["moved"] == 1
    assert row(client, id)["payload"] == b"x"
    assert old.left() == set()


def test_a_dry_run_counts_and_changes_nothing(server, client):
    old = Library(client)
    for n in range(7):
        old.pending(b"%d" % n, now_ms() // 1000 + n)
    old.listed("ready", b"r")
    before = old.left()
    table = move(server, "--dry-run", "--batch", 2)
    assert (table["pending"]["moved"], table["ready"]["moved"]) == (7, 1)
    assert old.left() == before
    assert not client.exists("new")


def test_progress_is_a_bar_on_a_terminal(server, client):
    old = Library(client)
    for n in range(300):
        old.pending(b"%d" % n, now_ms() // 1000 + 60)
    screen, terminal = os.openpty()
    env = {**os.environ, "COLUMNS": "60"}
    with subprocess.Popen(command(server, "--batch", 1), env=env, stdout=subprocess.DEVNULL, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(screen, 65536):
                shown += part
        except OSError:
            pass  # how Linux says that the other end is closed
    os.close(screen)
    assert process.returncode == 0, shown
    lines = [line.strip() for line in shown.decode().replace("\x1b[K", "").split("\r") if line.strip()]
    assert len(lines) > 1 and all(re.fullmatch(r"\[#* *\] +\d+% [\d,]+ of 300  .* left  pending", line) for line in lines), lines
    assert lines[-1].startswith("[#") and " ] " not in lines[-1] and "100% 300 of 300" in lines[-1]
    assert max(map(len, lines)) < 60


def test_entries_without_a_payload_stay_and_are_counted(server, client):
    old = Library(client)
    gone = old.pending(b"expired", now_ms() // 1000 + 60)
    client.delete(old.payload(gone))
    # The message was intercepted while a consumer had it, so the library has dropped its count.
    old.unack(b"intercepted", now_ms() // 1000 - 1, retries=None)
    old.garbage(b"given up")
    live = [old.pending(b"live", now_ms() // 1000 + 60 + n) for n in range(5)]
    table = move(server, "--batch", 2)
    assert table["pending"]["gone"] == 1 and table["pending"]["moved"] == 5
    assert table["unack"]["intercepted"] == 1 and table["unack"]["moved"] == 0
    assert table["garbage"]["given_up"] == 1
    assert client.execute_command("DQ.LEN", "new") == len(live)
    again = move(server, "--send-given-up")
    assert again["pending"]["moved"] == 0 and again["garbage"]["moved"] == 1


def test_a_move_that_was_killed_can_be_started_again(server, client):
    old = Library(client)
    pipe = client.pipeline(transaction=False)
    ids = [str(uuid.uuid4()) for _ in range(4000)]
    for n, id in enumerate(ids):
        pipe.set(old.payload(id), b"%d" % n, px=3_600_000)
        pipe.hset(old.key("retry:cnt"), id, 3)
        pipe.lpush(old.key("ready"), id)
    pipe.execute()
    handled = []
    for share in (0.1, 0.3, 0.5):
        script = subprocess.Popen(
            command(server, "--batch", 20), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: client.llen(old.key("ready")) < len(ids) * (1 - share), 20, "some progress")
        os.kill(script.pid, signal.SIGKILL)
        script.wait()
        # The new consumers work already: a finished id must not come a second time.
        while got := msgs(client.execute_command("DQ.FETCH", "new", "COUNT", 1000)):
            handled += [m.id.decode() for m in got]
            client.execute_command("DQ.ACK", "new", *[m.receipt for m in got])
    move(server)
    while got := msgs(client.execute_command("DQ.FETCH", "new", "COUNT", 1000)):
        handled += [m.id.decode() for m in got]
        client.execute_command("DQ.ACK", "new", *[m.receipt for m in got])
    assert handled == ids
    assert old.left() == set()


def test_a_message_sent_before_a_kill_is_not_sent_twice(server, client):
    """A kill between the two: the message is in both queues, pending in one case and finished in the other."""
    old = Library(client)
    client.execute_command("DQ.CREATE", "new", "DEDUP", 60000)
    waiting, finished = (old.pending(text, now_ms() // 1000 - 5) for text in (b"waiting", b"finished"))
    client.execute_command("DQ.SEND", "new", b"finished", "ID", finished)
    [m] = msgs(client.execute_command("DQ.FETCH", "new"))
    client.execute_command("DQ.ACK", "new", m.receipt)
    client.execute_command("DQ.SEND", "new", b"waiting", "ID", waiting)
    table = move(server)
    assert table["pending"]["there"] == 2 and table["pending"]["moved"] == 0
    assert client.execute_command("DQ.LEN", "new") == 1
    assert old.left() == set()


def test_the_dedup_of_the_new_queue_is_restored(server, client):
    Library(client).pending(b"x", now_ms() // 1000)
    client.execute_command("DQ.CREATE", "new", "DEDUP", 1234)
    move(server)
    assert as_map(client.execute_command("DQ.INFO", "new"))["dedup"] == 1234
    assert not list(client.scan_iter("dq-migration:*"))


def test_a_message_whose_id_is_taken_stays_and_is_reported(server, client):
    old = Library(client)
    id = old.pending(b"ours", now_ms() // 1000)
    client.execute_command("DQ.SEND", "new", b"theirs", "ID", id)
    assert move(server, code=1)["pending"]["in_use"] == 1
    assert client.zscore(old.key("pending"), id) is not None
    assert row(client, id)["payload"] == b"theirs"


def test_a_full_queue_stops_the_move_and_nothing_is_lost(server, client):
    old = Library(client)
    for n in range(10):
        old.pending(b"%d" % n, now_ms() // 1000 + 60)
    client.execute_command("DQ.CREATE", "new", "MAXLEN", 4)
    assert move(server, code=2)["pending"]["moved"] == 4
    assert client.zcard(old.key("pending")) == 6
    client.execute_command("DQ.ALTER", "new", "MAXLEN", 0)
    assert move(server)["pending"]["moved"] == 6
    assert client.execute_command("DQ.LEN", "new") == 10


@pytest.mark.slow
def test_the_move_waits_for_messages_that_consumers_hold(server, client):
    old = Library(client)
    acked = old.unack(b"acked in time", now_ms() // 1000 + 600)
    late = old.unack(b"never acked", now_ms() // 1000 + 600)
    assert move(server, "--no-wait", code=1)["unack"]["held"] == 2
    with subprocess.Popen(command(server), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as script:
        assert any("; waiting" in line for line in script.stderr)
        # The script looks again after five seconds, whenever that is.
        client.zrem(old.key("unack"), acked)
        client.delete(old.payload(acked))
        client.hdel(old.key("retry:cnt"), acked)
        client.zadd(old.key("unack"), {late: now_ms() // 1000 - 1})
        script.communicate(timeout=50)
    assert script.returncode == 0
    assert row(client, acked) is None
    assert row(client, late)["retries-left"] == 2


def test_the_expiry_of_a_payload_becomes_a_ttl(server, client):
    old = Library(client)
    mortal = old.pending(b"x", now_ms() // 1000, life=600_000)
    # The clock of the new queue is manual, so it does not move while the script starts.
    client.execute_command("DQ.CREATE", "new", "CLOCK", "MANUAL", now_ms())
    move(server, "--keep-ttl")
    client.execute_command("DQ.TICK", "new", "ADVANCE", 500_000)
    assert row(client, mortal)["state"] == b"ready"
    client.execute_command("DQ.TICK", "new", "ADVANCE", 100_000)
    assert row(client, mortal)["state"] == b"dead"
    assert row(client, mortal)["reason"] == b"expired"
