"""Sends commands that are to be confirmed, in one pipeline with the command that confirms them."""

import time
from typing import Any, TypeVar

from redis.exceptions import MovedError

from dqueue._async.runtime import sleep
from dqueue.nodes import AsyncNodes
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
        self._nodes = AsyncNodes(client)

    async def do(self, call: Call[T], patience: float) -> T:
        """Runs a call until it is confirmed, for `patience` ms. Raises NotConfirmed if it was run, and is not confirmed."""
        trial = Trial(self._durable, call)
        deadline = time.monotonic() + patience / 1000
        for pause in pauses():
            try:
                return trial.result(*await self.pipelined(call.words[1], trial.commands))
            except Exception as error:
                if not trial.may_go_on(error) or time.monotonic() + pause > deadline:
                    raise
            await sleep(pause)
        raise AssertionError("pauses() does not end")

    async def pipelined(self, key: Word, commands: list[list[Word]]) -> list[Any]:
        """Sends commands about a key over one connection. Returns the reply to each, which may be an error."""
        replies = await self._once(key, commands)
        if isinstance(replies[0], MovedError):
            await self._client.nodes_manager.initialize()
            replies = await self._once(key, commands)
        return replies

    async def _once(self, key: Word, commands: list[list[Word]]) -> list[Any]:
        client = self._client
        if self._nodes.is_cluster:
            await self._nodes.connect()
            client = self._nodes.known()[client.get_node_from_key(key).name]
        pipeline = client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return replies
