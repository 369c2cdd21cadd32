# Generated from _async/caller.py by tools/async_to_sync.py. Change that file, and run the script.
"""Runs calls, and makes methods of verbs: the common part of `Queue` and `Family`."""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from dqueue._sync.confirming import Confirming
from dqueue._sync.runtime import sleep
from dqueue.protocol.calls import Call, Page
from dqueue.protocol.client import Client
from dqueue.protocol.durable import CONFIRMED, Durable, durable_of
from dqueue.protocol.options import Millis, millis
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.protocol.verbs import Pages, Steps, explain

P = ParamSpec("P")
T = TypeVar("T")


class Caller:
    """A client and verbs. `patience` is how long (ms) a call that may be repeated is repeated while there is no server.

    `durable` is whether, and how, each send and settlement is confirmed before a method returns.
    """

    verbs: Any

    def __init__(self, client: Client, patience: Millis, durable: bool | Durable) -> None:
        self.client = client
        self.patience = millis(patience)
        self.durable = durable_of(durable, client)
        self._confirming = Confirming(client, self.durable) if self.durable else None

    def _do(self, call: Call[T]) -> T:
        if self._confirming is not None and call.words[0] in CONFIRMED:
            return self._confirming.do(call, self.patience)
        if not call.may_be_repeated:
            return call.read(self.client.execute_command(*call.words))
        deadline = time.monotonic() + self.patience / 1000
        for pause in pauses():
            try:
                return call.read(self.client.execute_command(*call.words))
            except Exception as error:
                if not is_transient(error) or time.monotonic() + pause > deadline:
                    raise
            sleep(pause)
        raise AssertionError("pauses() does not end")


def one(verb: Callable[Concatenate[Any, P], Call[T]]) -> Callable[Concatenate[Any, P], T]:
    """Makes a method of a verb of one call."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(verb(self.verbs, *args, **kwargs))

    explain(method, verb)
    return method


def several(verb: Callable[Concatenate[Any, P], Steps[T]]) -> Callable[Concatenate[Any, P], T]:
    """Makes a method of a verb of several calls."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        steps = verb(self.verbs, *args, **kwargs)
        go: Callable[[], Call[Any]] = functools.partial(next, steps)
        while True:
            try:
                call = go()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                go = functools.partial(steps.send, self._do(call))
            except Exception as error:
                go = functools.partial(steps.throw, error)

    explain(method, verb)
    return method


def listed(verb: Callable[Concatenate[Any, P], Pages[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Makes a method, which yields records, of a verb that lists."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        for page_at in verb(self.verbs, *args, **kwargs):
            cursor: str | None = "0"
            while cursor is not None:
                page: Page[T] = self._do(page_at(cursor))
                for record in page.items:
                    yield record
                cursor = page.cursor

    explain(method, verb)
    return method
