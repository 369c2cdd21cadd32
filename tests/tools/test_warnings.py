"""The dangers for the queues of a server are told in its log, by `dq ls` and by `dq web`, in the same words."""

import json
import re

import pytest

from tests.harness.cli import Cli, Screen
from tests.harness.optional import needs
from tests.harness.server import module_path, wait_for
from tests.harness.topology import Pair

pytest_plugins = ["tests.harness.web_fixtures", "tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(300)

# The cron writes the warnings, ten times a second, and those about replicas five seconds later.
LATER = 7


def lines(server) -> list:
    """The warnings in the log of a server, in their order."""
    return re.findall(r"# <[a-z]+> dq: (.*)", server.log())


def logged(server, count: int) -> list:
    wait_for(lambda: len(lines(server)) >= count, 20, "the warnings in the log")
    return lines(server)


@needs("tmux")
def test_the_log_the_list_and_the_pages_have_the_same_words(make_server, program, start):
    server = make_server(maxmemory_policy="allkeys-lru", min_replicas_to_write=1, save="3600 1")
    assert logged(server, 3) == [
        "maxmemory-policy is allkeys-lru, so whole queues can be evicted: set noeviction",
        "appendonly is no, so a crash loses what came since the last snapshot: set appendonly yes",
        "0 of 1 replicas that a write needs are there: writes are refused",
    ]
    server.client().config_set("min-replicas-to-write", 0)
    server.client().execute_command("DQ.SEND", "q", "x")
    server.client().config_set("min-replicas-to-write", 1)
    url = f"redis://127.0.0.1:{server.port}"
    with Screen(Cli(program, url), "ls", columns=120) as screen:
        screen.sees(*(f"dq: warning: {line}" for line in lines(server)))
    me = start(url=url).visitor()
    me.sees("server", *lines(server))
    assert json.loads(me.get("api/queues").text)["warnings"] == lines(server)
    assert len(lines(server)) == 3


def test_without_any_file_a_restart_can_lose_all(make_server, start):
    server = make_server(maxmemory_policy="volatile-lru")
    words = logged(server, 2)
    assert words[0].startswith("maxmemory-policy is volatile-lru, so queues with an EXPIRE can be evicted")
    assert words[1].startswith("appendonly is no and nothing is saved by itself, so a restart can lose all queues")
    start(url=f"redis://127.0.0.1:{server.port}").visitor().sees("server", *words)


def test_a_module_that_is_loaded_later_warns_then(make_server):
    server = make_server(load_module=False)
    assert lines(server) == []
    server.client().execute_command("MODULE", "LOAD", str(module_path()))
    assert len(logged(server, 1)) == 1


def test_a_sound_pair_has_no_warnings_and_a_failover_gives_replicas_time(tmp_path):
    pair = Pair(appendonly="yes")
    try:
        pair.start()
        # Both servers start with the setting, as they do from a file; the replica connects within the patience.
        for server in (pair.primary, pair.replica):
            server.client().config_set("min-replicas-to-write", 1)
        began = pair.primary.client().info("server")["uptime_in_seconds"]
        wait_for(lambda: pair.primary.client().info("server")["uptime_in_seconds"] > began + LATER, 20, "the patience")
        assert lines(pair.primary) == []
        assert lines(pair.replica) == []
        # A replica that becomes a primary without having a replica warns about that.
        pair.promote()
        assert logged(pair.replica, 1) == ["0 of 1 replicas that a write needs are there: writes are refused"]
        pair.replica.client().config_set("min-replicas-to-write", 0)
    finally:
        pair.close()
