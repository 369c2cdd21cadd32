# Generated from _async/settling.py by tools/async_to_sync.py. Change that file, and run the script.
"""Tells the server the outcome of messages."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from dqueue._sync.family import Family
from dqueue._sync.queue import Queue
from dqueue._sync.runtime import Event, sleep
from dqueue.protocol.calls import Call
from dqueue.protocol.message import Message
from dqueue.protocol.retrying import is_transient, pauses
from dqueue.working.lastwords import LAST_WORDS
from dqueue.working.outcomes import Done, acked, failure, given_back, renewed

log = logging.getLogger("dqueue")


class Settling:
    """Runs commands, and repeats each if needed until the lease is over or the worker must end."""

    def __init__(self, queue: Queue | Family, lease: int, stopping: Event) -> None:
        self._queue = queue
        self._lease = lease
        self._stopping = stopping

    def ack(self, done: Sequence[Done]) -> None:
        """Acks messages. If the server refuses a result, because it is too long, say, only its message has failed."""
        for call in acked([one for one in done if one.result is None]):
            self.run(call)
        for one in done:
            if one.result is not None:
                (call,) = acked([one])
                self.run(call, one.message)

    def renew(self, messages: Sequence[Message]) -> None:
        """Extends leases that may end soon. Heartbeats go on with that."""
        for call in renewed(messages, self._lease):
            self.run(call)

    def give_back(self, messages: Sequence[Message]) -> None:
        """Gives messages back as if they had not been delivered."""
        for call in given_back(messages):
            self.run(call)

    def run(self, call: Call[Any], message: Message | None = None) -> None:
        """Runs a command. If the server refuses it, `message` has failed."""
        given_up = time.monotonic() + self._lease / 1000
        for pause in pauses(self._lease):
            try:
                self._queue._do(call)
                return
            except Exception as error:
                if not is_transient(error) or time.monotonic() + pause > given_up:
                    log.error("%s failed: %s", call.words[0], error)
                    if message is not None and not is_transient(error):
                        self.run(failure(message, error))
                    return
            if self._stopping.is_set():
                given_up = min(given_up, time.monotonic() + LAST_WORDS)
            sleep(pause)
