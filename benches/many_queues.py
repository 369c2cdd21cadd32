"""Measures many queues that all have work at the same time, each row beside one queue with as many messages."""

import time
from statistics import median

from generator import CONNECTIONS
from report import Row
from server import CLIENT_CORE, CORES
from timeliness import MOST_ROUNDS

from tests.harness.absence import Absences
from tests.harness.replies import Queue
from tests.load.probe import Probe, Waits

SECTION = "Many queues: how late, and the longest wait of a PING meanwhile"
# Queues of one moment, and the most ms that their messages may become ready late.
MOMENTS = ((1_000, 5), (10_000, 60))
SOON = 1_500
"""The distance of the moment in the future, in ms. Sending takes some 10 us a message beside that."""


def many_queues(bench):
    """Returns rows of messages, leases and schedules of many queues that are due together."""
    rows = []
    with bench.server() as server:
        for queues, at_most in MOMENTS:
            if bench.wanted(f"queues-{queues}"):
                rows += _moment(bench, server, bench.scaled(queues), at_most)
        parts = (("steady", _steady), ("schedules", _schedules), ("every", _every), ("bind", _bind), ("tenant", _tenant))
        for name, part in parts:
            if bench.wanted(f"queues-{name}"):
                rows.append(part(bench, server))
    return rows


def _rounds(bench, name, measure):
    """Returns what `measure` returned in each round."""
    found = []
    for number in range(min(bench.rounds, MOST_ROUNDS)):
        bench.say(f"many queues, {name}: round {number + 1}")
        bench.look_around()
        found.append(measure())
    return found


def _moment(bench, server, queues, at_most):
    """A message in each queue, all due in one millisecond: when the last is ready, and when consumers have them."""
    what = f"{queues:,} queues, a message each due in one millisecond"

    def ready():
        return _ready(bench, queues, queues), _ready(bench, 1, queues)

    found = _rounds(bench, what, ready)
    many, one = ([pair[side] for pair in found] for side in (0, 1))
    lag, ping = (median(each[part] for each in many) for part in (0, 1))
    lag_of_one, ping_of_one = (median(each[part] for each in one) for part in (0, 1))
    peer = f"{lag_of_one:.0f} ms, PING {ping_of_one:.2f} ms in one queue"
    yield Row(SECTION, f"{what}: the last is ready", f"{lag:.0f} ms", peer, lag, "ms", at_most=at_most)
    yield Row(SECTION, f"{what}: PING", f"{ping:.2f} ms", peer, ping, "ms", at_most=2)

    def hands():
        each = (_late(bench, server, count, queues, 0) for count in (queues, 1))
        return [late.percentile(99) for late in each]

    in_many, in_one = (median(each) for each in zip(*_rounds(bench, f"{what}, consumers", hands)))
    what = f"{what}: in the hands of {CONNECTIONS} consumers, p99"
    yield Row(SECTION, what, f"{in_many:.1f} ms", f"{in_one:.1f} ms from one queue", in_many / in_one)


def _ready(bench, queues, messages):
    """Returns how late the last of the messages became ready, and the longest wait of a PING, both in ms and both
    without the absences of processors.

    The server counts the lateness since its start, so each measurement has a server of its own.
    """
    with bench.server() as server:
        due = int(time.time() * 1000) + SOON + messages // 20
        pipe = server.client.pipeline(transaction=False)
        for number in range(messages):
            pipe.execute_command("DQ.SEND", f"q:{number % queues}", "x" * 100, "AT", due)
        pipe.execute()
        _touch(server, queues, due)
        with Absences(CORES) as absences, Probe(server.port, CLIENT_CORE) as probe:
            while time.time() * 1000 < due + 500:
                time.sleep(0.05)
        lag = server.client.info("everything")["dq_timer_lag_max_ms"]
    absent = absences.during(due / 1000, (due + lag) / 1000)
    return lag - absent * 1000, Waits.of(absences, probe).own


def _touch(server, queues, due):
    """Reads each queue shortly before `due`, so that its memory has just been used.

    A virtual machine may take back the page tables of memory that was not used for some hundred milliseconds. The next
    use of each page then takes some 7 us whoever uses it, which would be most of what is measured here.
    """
    reading = 30 + queues // 40
    time.sleep(max(0, due / 1000 - reading / 1000 - time.time()))
    pipe = server.client.pipeline(transaction=False)
    for number in range(queues):
        pipe.execute_command("DQ.LEN", f"q:{number}")
    pipe.execute()


def _late(bench, server, queues, messages, seconds):
    """Returns how late messages in this number of queues reach blocked consumers, without the absences of processors."""
    server.empty()
    with Absences(CORES) as absences:
        late = bench.generator.lateness(server, "q", messages, seconds, CONNECTIONS, queues=queues)
    return late.without(absences)


def _steady(bench, server):
    queues, messages, seconds = bench.scaled(1_000), bench.scaled(20_000), 1 if bench.quick else 10

    def measure():
        return [_late(bench, server, count, messages, seconds).percentile(99) for count in (queues, 1)]

    what = f"2,000 messages a second over {queues:,} queues, in the hands of {CONNECTIONS} consumers: p99"
    many, one = (median(each) for each in zip(*_rounds(bench, what, measure)))
    return Row(SECTION, what, f"{many:.2f} ms", f"{one:.2f} ms from one queue", many, "ms", at_most=5)


def _schedules(bench, server):
    """Returns how long a queue needs to fire schedules that are all due at one moment."""
    count = bench.scaled(10_000)

    def measure():
        server.empty()
        due = int(time.time() * 1000) + SOON + count // 10
        pipe = server.client.pipeline(transaction=False)
        for number in range(count):
            pipe.execute_command("DQ.SCHEDULE", "q", f"s{number}", "EVERY", 86_400_000, "START", due, "PAYLOAD", "x")
        pipe.execute()
        return _until(server, lambda: server.client.execute_command("DQ.LEN", "q") == count) * 1000 - due

    what = f"{count:,} schedules of one moment: until the last has fired"
    took = median(_rounds(bench, what, measure))
    return Row(SECTION, what, f"{took:.0f} ms", "", took, "ms", at_most=200)


def _until(server, is_done):
    """Returns when `is_done` held, in Unix seconds."""
    while not is_done():
        time.sleep(0.001)
    return time.time()


def _every(bench, server):
    """Three schedules that fire each millisecond, for two seconds: the share of their firings that came."""
    seconds = 2

    def measure():
        server.empty()
        for number in range(3):
            server.client.execute_command("DQ.SCHEDULE", f"q:{number}", "s", "EVERY", 1, "PAYLOAD", "x")
        before, began = _length(server, 3), time.time()
        time.sleep(seconds)
        fired, took = _length(server, 3) - before, time.time() - began
        return fired / (3 * took * 1000)

    share = median(_rounds(bench, "three EVERY 1", measure))
    return Row(SECTION, "three EVERY 1: firings of those due", f"{share:.1%}", "", share, "", at_least=0.99)


def _length(server, queues):
    return sum(server.client.execute_command("DQ.LEN", f"q:{number}") for number in range(queues))


def _bind(bench, server):
    """A connection with a bound lease in each of many queues closes: until the last message is free."""
    queues = bench.scaled(1_000)

    def measure():
        server.empty()
        keys = [f"q:{number}" for number in range(queues)]
        connection = server.db(0)
        bound = connection.client()
        for key in keys:
            server.client.execute_command("DQ.CREATE", key, "BACKOFF", "FIXED", 0)
            server.client.execute_command("DQ.SEND", key, "x")
            bound.execute_command("DQ.FETCH", key, "BIND", "LEASE", 600_000)
        bound.close()
        connection.close()
        closed = time.time()
        pipe = server.client.pipeline(transaction=False)

        def are_free():
            for key in keys:
                pipe.execute_command("DQ.LEN", key, "running")
            return not any(pipe.execute())

        return (_until(server, are_free) - closed) * 1000

    what = f"a connection with leases bound to it in {queues:,} queues closes: until all are free"
    took = median(_rounds(bench, what, measure))
    return Row(SECTION, what, f"{took:.0f} ms", "", took, "ms", at_most=20)


def _tenant(bench, server):
    """Queues with a schedule that fires each millisecond, and the delay of the messages of another queue."""
    queues = bench.scaled(1_000)

    def measure():
        server.empty()
        for number in range(queues):
            server.client.execute_command("DQ.SCHEDULE", f"q:{number}", "s", "EVERY", 1, "MISSED", "SKIP", "PAYLOAD", "x")
        server.client.execute_command("DQ.CREATE", "other")
        for _ in range(200):
            server.client.execute_command("DQ.SEND", "other", "x", "DELAY", 5)
            server.client.execute_command("DQ.FETCH", "other", "BLOCK", 0, "NOACK")
        return Queue(server.client, "other").info()["lateness-p99"]

    what = f"{queues:,} queues with an EVERY 1 each: messages of another queue, p99"
    late = median(_rounds(bench, what, measure))
    return Row(SECTION, what, f"{late} ms", "", late, "ms", at_most=5)
