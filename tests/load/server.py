"""The server whose answers are timed."""

import os

from tests.harness.server import Server

# The redis.conf of this repository has the same settings. Redis 7.0 would otherwise free an expired key in the main
# thread.
LAZY = {f"lazyfree-lazy-{what}": "yes" for what in ("expire", "eviction", "user-del", "user-flush", "server-del")}


class TimedServer(Server):
    """A server that frees keys in the background, and has priority over the other processes of this machine."""

    def __init__(self, **conf):
        super().__init__(**LAZY, **conf)

    def start(self) -> "TimedServer":
        super().start()
        try:
            os.setpriority(os.PRIO_PROCESS, self.pid, -10)
        except PermissionError:
            # Only root may set the priority. The figures then have what else runs here in them.
            pass
        return self
