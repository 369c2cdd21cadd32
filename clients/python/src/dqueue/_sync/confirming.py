# Generated from _async/confirming.py by tools/async_to_sync.py. Change that file, and run the script.
"""Sends commands that are to be confirmed, in one pipeline with the command that confirms them."""

import time
from typing import Any, TypeVar

from redis.exceptions import MovedError

from dqueue._sync.runtime import sleep
from dqueue.nodes import Nodes
from dqueue.protocol.calls import Call
from dqueue.protocol.durable import Durable, Trial
from dqueue.protocol.options import Word
from dqueue.protocol.retrying import pauses

T = TypeVar("T")


class Confirming:
    """Has calls confirmed. In a cluster it has connections of its own to each node."""

    def __init__(self, client: Any, durable: Durable) -> None:
        self._client = client
        self._durable = durable
        self._nodes = Nodes(client)

    def do(self, call: Call[T], patience: float) -> T:
        """Runs a call until it is confirmed, for `patience` ms. Raises NotConfirmed if it was run, and is not confirmed."""
        trial = Trial(self._durable, call)
        deadline = time.monotonic() + patience / 1000
        for pause in pauses():
            try:
                return trial.result(*self.pipelined(call.words[1], trial.commands))
            except Exception as error:
                if not trial.may_go_on(error) or time.monotonic() + pause > deadline:
                    raise
            sleep(pause)
        raise AssertionError("pauses() does not end")

    def pipelined(self, key: Word, commands: list[list[Word]]) -> list[Any]:
        """Sends commands about a key over one connection. Returns the reply to each, which may be an error."""
        replies = self._once(key, commands)
        if isinstance(replies[0], MovedError):
            self._client.nodes_manager.initialize()
            replies = self._once(key, commands)
        return replies

    def _once(self, key: Word, commands: list[list[Word]]) -> list[Any]:
        client = self._client
        if self._nodes.is_cluster:
            self._nodes.connect()
            client = self._nodes.known()[client.get_node_from_key(key).name]
        pipeline = client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        replies: list[Any] = pipeline.execute(raise_on_error=False)
        return replies
