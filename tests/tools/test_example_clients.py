"""The producer and the worker with redis-py and with redis-cli, with a real server."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.harness.lossy import LossyProxy
from tests.harness.replies import Queue
from tests.harness.server import ROOT, wait_for

CLIENTS = ROOT / "examples/clients"


PROGRAMS = {"python_sync": [sys.executable, CLIENTS / "python_sync.py"], "redis-cli": ["bash", CLIENTS / "redis-cli.sh"]}


class Program:
    """One program with one protocol."""

    def __init__(self, name, resp, queue="orders"):
        self.name = name
        self.resp = resp
        self.queue = queue
        self.command = PROGRAMS[name]

    @property
    def title(self):
        return f"{self.name}-resp{self.resp}"

    def start(self, role, port, *words, lease_ms=30_000):
        """Starts it in a process group of its own; its output can be read while it runs."""
        command = [*self.command, role, f"redis://127.0.0.1:{port}", self.queue, *words]
        return subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            start_new_session=True,
            env={**os.environ, "RESP": str(self.resp), "LEASE_MS": str(lease_ms), "PYTHONUNBUFFERED": "1"},
        )

    def send(self, port, *words):
        """Runs the producer to its end; its lines."""
        process = self.start("send", port, *words)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
        return output.splitlines()

    @contextmanager
    def working(self, port, **kwargs):
        """The worker, at work. Its whole group is killed in the end, if it still lives."""
        process = self.start("work", port, **kwargs)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def stopped(process):
    """Sends SIGTERM. Returns the remaining lines, if the program ended in time and without an error."""
    process.terminate()
    return ended(process)


def ended(process):
    """Returns the remaining lines, if the program ends in time and without an error."""
    output, _ = process.communicate(timeout=15)
    assert process.returncode == 0, output
    return output.splitlines()


EACH = [("python_sync", 2), ("python_sync", 3), ("redis-cli", 3)]
each = pytest.mark.parametrize("program", EACH, ids=[f"{name}-resp{resp}" for name, resp in EACH], indirect=True)


@pytest.fixture
def program(request):
    return Program(*request.param)


@pytest.fixture
def q(server):
    return Queue(server.client(), "orders")


def order(name, work_ms, **fields):
    """The payload of a job."""
    return json.dumps({"order": name, "work_ms": work_ms, **fields})


def closed(q):
    """Which orders are closed, and with which receipt."""
    return {name.decode(): int(score) for name, score in q.client.zrange(f"{q.key}:closed", 0, -1, withscores=True)}


def everyone():
    """All programs, each with a queue of its own, for tests in which the same time goes by for all."""
    return [Program(name, resp, queue=f"orders:{name}:{resp}") for name, resp in EACH]


@contextmanager
def all_working(server, programs, **kwargs):
    """The workers of all of them: (program, its queue, its process)."""
    with ExitStack() as stack:
        processes = [stack.enter_context(program.working(server.port, **kwargs)) for program in programs]
        yield [(program, Queue(server.client(), program.queue), process) for program, process in zip(programs, processes)]


def all_stopped(working):
    """SIGTERM to all; the remaining lines of each, by its name."""
    for _, _, process in working:
        process.terminate()
    return {program.title: ended(process) for program, _, process in working}


@each
def test_a_lost_reply_does_not_send_twice(program, q, server):
    proxy = LossyProxy(server.port)
    proxy.lose(b"DQ.SEND", times=2)
    lines = program.send(proxy.port, 4)
    proxy.close()
    assert proxy.lost == 2
    assert sum(line.startswith("trying again") for line in lines) == 2
    said = [line for line in lines if line.startswith(("sent", "already there"))]
    assert [line.rsplit(" ", 1)[1] for line in said] == [f"close:order-{n}" for n in range(4)]
    # Both lost replies were about the first order.
    assert [line.startswith("already there") for line in said] == [True, False, False, False]
    assert (q.len(), q.info()["duplicates"]) == (4, 2)
    assert all(line.startswith("already there") for line in program.send(server.port, 4))
    assert q.len() == 4


@pytest.mark.slow
@each
def test_a_worker_handles_retries_and_rejects_messages(program, q, server):
    q.do("CREATE", "RETRIES", 1)
    q.client.execute_command("CONFIG", "RESETSTAT")
    program.send(server.port, 12, 5)
    q.send(order("order-x", 0, broken=True), "ID", "close:order-x")
    with program.working(server.port) as process:
        wait_for(lambda: q.len() == 0, 20)
        # A connection may break at any time, also while a FETCH waits.
        killer = server.client()
        wait_for(lambda: int(server.info("clients")["blocked_clients"]) == 1)
        killer.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        Queue(killer, "orders").send(order("late", 5), "ID", "close:late")
        wait_for(lambda: Queue(killer, "orders").len() == 0, 20)
        lines = stopped(process)
    again = Queue(server.client(), "orders")
    assert set(closed(again)) == {*(f"order-{n}" for n in range(12)), "late"}
    assert [record.decode() for record in again.do("LIST", "dead", "IDS")[1]] == ["close:order-x"]
    assert b"cannot be closed" in again.get("close:order-x")["error"]
    info = again.info()
    assert (info["acked"], info["timeouts"]) == (13, 0)
    assert "done close:order-3 attempt 1" in lines
    assert "failed close:order-x attempt 1" in lines and "failed close:order-x attempt 2" in lines
    # All orders were acked by the FETCH that followed; only the last batch before the stop may need an ACK.
    assert server.info("commandstats").get("cmdstat_dq.ack", "calls=0").split(",")[0] in ("calls=0", "calls=1")


@pytest.mark.slow
def test_a_client_that_waits_long_reports_no_error(server):
    """All programs at once, with nothing to do for longer than their socket timeout: none gives up on a reply."""
    programs = everyone()
    client = server.client()

    def waiting():
        """Connection -> protocol of the clients that wait in FETCH."""
        listed = client.client_list()
        return {one["id"]: one["resp"] for one in listed if one["cmd"] == "dq.fetch" and "b" in one["flags"]}

    def whole(connections):
        return connections if len(connections) == len(programs) else None

    with all_working(server, programs) as working:
        before = wait_for(lambda: whole(waiting()), 20, "all workers")
        assert sorted(before.values()) == sorted(str(program.resp) for program in programs)
        time.sleep(5.5)
        # redis-cli makes a connection for each command; all other programs keep theirs. One that is between two FETCHes
        # at the moment of looking is met by the next look.
        kept = sum(program.name != "redis-cli" for program in programs)
        wait_for(lambda: len(before.keys() & waiting().keys()) == kept, 5, "all workers with their connections")
        for program in programs:
            client.execute_command("DQ.SEND", program.queue, order("last", 0), "ID", "close:last")
        wait_for(lambda: all(client.exists(f"{program.queue}:closed") for program in programs), 20, "all work")
        said = all_stopped(working)
    assert said == {name: ["done close:last attempt 1"] for name in said}


@pytest.mark.slow
def test_a_worker_keeps_long_leases_and_stops_on_sigterm(server):
    with all_working(server, everyone(), lease_ms=3000) as working:
        for program, q, _ in working:
            q.do("CREATE", "DEDUP", 60_000)
            q.do("PAUSE")
            q.send(order("long", 6400), "ID", "close:long")
            for n in range(3):
                q.send(order(f"endless-{n}", 60_000), "ID", f"close:endless-{n}")
        for _, q, _ in working:
            q.do("RESUME")
        busy = list(working)

        def all_told_to_stop():
            # Each as soon as it has done the long work: the ack of that waits for the next FETCH, or for the stop.
            for one in busy[:]:
                program, q, process = one
                if "long" in closed(q) and q.state("close:endless-0") == "running":
                    # Heartbeats have kept the lease for twice its length.
                    assert q.info()["timeouts"] == 0, program.title
                    process.terminate()
                    busy.remove(one)
            return not busy

        wait_for(all_told_to_stop, 40, "the long work")
        said = {program.title: ended(process) for program, _, process in working}
    for program, q, _ in working:
        lines = said[program.title]
        assert "done close:long attempt 1" in lines, program.title
        assert any(line.startswith("gave back") and "close:endless-0" in line for line in lines), program.title
        info = q.info()
        counts = (info["timeouts"], info["acked"], info["running"], info["ready"])
        assert counts == (0, 1, 0, 3), program.title
        endless = [(b"close:endless-%d" % n, 1) for n in range(3)]
        assert [(m.id, m.attempt) for m in q.fetch("COUNT", 3)] == endless, program.title


@pytest.mark.slow
def test_a_frozen_worker_cannot_finish_a_message_of_another(server):
    with all_working(server, everyone(), lease_ms=600) as working:
        for program, q, process in working:
            q.do("CREATE", "DEDUP", 60_000)
            q.send(order("order-1", 1500), "ID", "close:order-1")
            wait_for(lambda q=q: q.state("close:order-1") == "running", 20, f"the work of {program.title}")
            os.killpg(process.pid, signal.SIGSTOP)
        successors = {}
        for program, q, process in working:
            wait_for(lambda q=q: q.state("close:order-1") == "ready", 10, f"the end of the lease of {program.title}")
            successors[program.title] = successor = q.one()
            assert successor.attempt == 2
            q.client.zadd(f"{q.key}:closed", {"order-1": successor.receipt}, gt=True)
            assert q.ack(successor.receipt) == 1
            os.killpg(process.pid, signal.SIGCONT)
        for program, _, process in working:
            for line in process.stdout:
                if "close:order-1" in line:
                    break
            assert line == "fenced close:order-1 attempt 1\n", program.title
        all_stopped(working)
    for program, q, _ in working:
        assert closed(q) == {"order-1": successors[program.title].receipt}, program.title
        assert q.info()["acked"] == 1, program.title


@pytest.mark.slow
@each
def test_producer_and_worker_continue_after_a_crash_of_the_server(program, make_server):
    # The server may have delivered a message whose reply was lost in the crash. It delivers that message again when the
    # lease has ended.
    server = make_server(appendonly="yes", **{"dq.start-grace": 1000})
    Queue(server.client(), "orders").do("CREATE", "RETRIES", 9, "DEDUP", 60_000)
    with program.working(server.port, lease_ms=1000) as process:
        producer = program.start("send", server.port, 40, 30)
        wait_for(lambda: len(closed(Queue(server.client(), "orders"))) > 5, 20)
        server.restart(crash=True)
        output, _ = producer.communicate(timeout=30)
        assert producer.returncode == 0, output
        q = Queue(server.client(), "orders")
        wait_for(lambda: q.len() == 0, 30)
        stopped(process)
    assert set(closed(q)) == {f"order-{n}" for n in range(40)}
    assert q.info()["sent"] == 40
