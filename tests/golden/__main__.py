"""python -m tests.golden v1: writes the files of this version into a folder that must not be there yet."""

import json
import shutil
import sys

from tests.golden import FOLDER, KEYS, describe
from tests.harness.replies import Queue
from tests.harness.server import Server, wait_for
from tests.harness.traffic import FAR, Traffic, rich, waiting

# No message in the files may become due while they must be loadable.
CENTURIES = 10**13


def main() -> None:
    folder = FOLDER / sys.argv[1]
    folder.mkdir()
    for name, preamble in (("preamble", "yes"), ("commands", "no")):
        server = Server(appendonly="yes", appendfsync="always", aof_use_rdb_preamble=preamble).start()
        try:
            write(server, folder, name)
        finally:
            server.close()


def write(server, folder, name) -> None:
    """The log of one kind. The one with a preamble has entries after it; the other is that of the dumps."""
    client = server.client()
    if name == "preamble":
        fill(server)
    else:
        # This server gets the same queues as the other files have.
        for key in KEYS:
            dump = bytes.fromhex((folder / f"{key}.dump").read_text())
            client.restore(key, 0, dump)
    client.execute_command("BGREWRITEAOF")
    wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "the rewriting")
    if name == "preamble":
        # On a manual clock no message falls due between the writing of one file and of the next.
        Traffic(client, "traffic", 5).run(150)
        client.execute_command("DQ.TICK", "traffic", "ADVANCE", 150)
        for key in KEYS:
            (folder / f"{key}.dump").write_text(client.dump(key).hex())
        client.save()
        shutil.copy(server.dir / "dump.rdb", folder / "dump.rdb")
        seen = json.dumps(describe(client), indent=1, sort_keys=True)
        (folder / "description.json").write_text(seen + "\n")
    shutil.copytree(server.dir / "appendonlydir", folder / name)


def fill(server) -> None:
    client = server.client()
    waiting(rich(client, "manual", "MANUAL"), FAR)
    waiting(rich(client, "server", "SERVER", CENTURIES), CENTURIES)
    Traffic(client, "traffic", 4, "CLOCK", "MANUAL", "RETAIN", 5000, "DEDUP", 900, "MAXLEN", 60).run(200)
    # The ids that are made from here on have another salt than the existing ones.
    client.execute_command("DEBUG", "RELOAD")
    for key in KEYS:
        client.execute_command("DQ.MSEND", key, 3, *"abc", "DELAY", CENTURIES)
    for key, far in ("manual", FAR), ("server", CENTURIES):
        leave_bound(server, Queue(client, key), far)
    client.execute_command("DQ.ALTER", "server", "SENDS", "OFF")


def leave_bound(server, q, far) -> None:
    """A lease of a connection that has closed, which a FETCH with the same token would restore in time."""
    q.send("bound", "ID", "bound", "GROUP", "bound")
    with server.wire() as wire:
        wire.call("DQ.FETCH", q.key, "GROUP", "bound", "CONSUMER", "gone", "TOKEN", "last", "BIND", "GRACE", far // 2)
        bound = q.get("bound")["lease-until"]
    wait_for(lambda: q.get("bound")["lease-until"] < bound, 20, "the end of the connection")


if __name__ == "__main__":
    main()
