"""Consumers that are followed by others when they die."""

import os
import traceback

from tests.checker.actors import Consumer

# `dq.start-grace` of all servers, in ms: for so long a consumer that has died keeps its messages after a start. It is less
# than by default, because every run waits for that.
GRACE = 1_000
# How long the server has been silent, in ms, before a consumer believes that nothing more will come.
PATIENCE = GRACE + 2_000


def consume(ports, key, directory, name, seed, until, lease, ways):
    """Keeps one consumer alive. All is well again when there is a file `healed` in the directory."""

    def live(life, path):
        consumer = Consumer(ports, key, path, f"{name}.{life}", seed + life, lease, ways)
        consumer.run(until, PATIENCE, lambda: os.path.exists(f"{directory}/healed"))

    lives(directory, name, live)


def lives(directory, name, live):
    """Each process that crashes is followed by another, with a new journal: `live` is called with the number and the
    journal.
    """
    os.setpgid(0, 0)
    for life in range(10_000):
        child = os.fork()
        if child == 0:
            try:
                live(life, f"{directory}/{name}.{life}.jsonl")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 9:
            os._exit(code & 0xFF)
