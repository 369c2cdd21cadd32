"""The ways in which one server loads its data again."""

import pytest

from tests.harness.server import wait_for

# The grace in ms. It is longer than the leases that end soon in these tests.
GRACE = 2000
AOF = {"appendonly": "yes"}
TEXT = AOF | {"aof_use_rdb_preamble": "no"}


def rewrite(client):
    """Rewrites the log and waits for the end."""
    client.execute_command("BGREWRITEAOF")

    def done():
        info = client.info("persistence")
        assert info["aof_last_bgrewrite_status"] == "ok"
        return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]

    wait_for(done, 20, "the AOF rewrite")


def reload(server):
    server.client().execute_command("DEBUG", "RELOAD")


def load_log(server):
    server.client().execute_command("DEBUG", "LOADAOF")


def restore(server):
    """Takes every key away and brings it back."""
    client = server.client()
    dumps = {key: client.dump(key) for key in client.keys()}
    client.flushall()
    for key, dump in dumps.items():
        client.restore(key, 0, dump)


def stop(server):
    server.client().execute_command("SAVE")
    server.restart()


def save_and_crash(server):
    client = server.client()
    client.execute_command("BGSAVE")
    wait_for(lambda: not client.info("persistence")["rdb_bgsave_in_progress"], 20, "BGSAVE")
    server.restart(crash=True)


def crash(server):
    server.restart(crash=True)


def rewrite_and_crash(server):
    rewrite(server.client())
    crash(server)


CYCLES = {
    "debug-reload": ({}, reload),
    "dump-restore": ({}, restore),
    "rdb": ({}, stop),
    "bgsave": ({}, save_and_crash),
    "debug-loadaof": (AOF, load_log),
    "aof-kill9": (AOF, crash),
    "aof-rewrite": (AOF, rewrite_and_crash),
    "aof-rewrite-loadaof": (TEXT, lambda server: (rewrite(server.client()), load_log(server))),
    "aof-rewrite-no-preamble": (TEXT, rewrite_and_crash),
}


@pytest.fixture(params=CYCLES)
def cycle(request, make_server):
    """A server, and a function that makes it load its data again."""
    conf, turn = CYCLES[request.param]
    server = make_server(**conf, **{"dq.start-grace": GRACE})
    return server, lambda: turn(server)
