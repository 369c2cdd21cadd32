"""The options that a driver wants its queues to have, also after the server has lost them."""

from collections.abc import Mapping
from typing import Any

import redis

from dqueue._sync.queue import Queue
from dqueue.protocol.client import Client
from dqueue.protocol.options import Word, words


class Creating:
    """A client that makes a queue, unless it is there, before each command, in the same write.

    A server loses its queues by FLUSHALL, DEL, or when an empty replica takes over, and no program can know that it has. So
    nothing depends on what a process remembers.
    """

    def __init__(self, client: Any, create: tuple[Word, ...]) -> None:
        self._client = client
        self._create = create

    def execute_command(self, *command: Any) -> Any:
        if not isinstance(self._client, redis.Redis):
            # A pipeline of a cluster does not know to which node a command of a module goes.
            self._client.execute_command(*self._create)
            return self._client.execute_command(*command)
        pipe: Any
        with self._client.pipeline(transaction=False) as pipe:
            pipe.execute_command(*self._create)
            pipe.execute_command(*command)
            return pipe.execute()[1]


class Lasting:
    """Options of the queues of a driver.

    `options` are those of queues that are not there. `given` are the names of those that the program has set: at its start
    an existing queue gets them, too, so that a changed setting takes effect. Others are left to DQ.ALTER.
    """

    def __init__(self, client: Client, options: Mapping[str, Any], given: set[str]) -> None:
        self._client = client
        self._options = dict(options)
        self._given = {name: value for name, value in options.items() if name in given}
        self.begun: set[str] = set()
        """The keys of the queues that this process has made or changed."""

    def begin(self, key: str) -> None:
        """Makes a queue, or changes its settings, once in this process."""
        if key in self.begun:
            return
        is_new = self._client.execute_command(*self._create(key)) is not None
        if not is_new and self._given:
            Queue(self._client, key).alter(**self._given)
        self.begun.add(key)

    def sender(self, key: str) -> Queue:
        """Returns the queue, for sending to it."""
        self.begin(key)
        return Queue(Creating(self._client, self._create(key)), key)

    def _create(self, key: str) -> tuple[Word, ...]:
        return ("DQ.CREATE", key, "NX", *words(self._options))
