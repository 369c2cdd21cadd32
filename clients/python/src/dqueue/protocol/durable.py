"""The confirmation that a durable queue asks for, and the errors of commands that are not confirmed.

Nothing here waits. The two modules `confirming` send the commands.
"""

import copyreg
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dqueue.protocol.calls import Call
from dqueue.protocol.client import socket_timeout
from dqueue.protocol.options import Millis, Word, millis
from dqueue.protocol.records import text
from dqueue.protocol.retrying import is_transient

T = TypeVar("T")

_REPEATED = {"DQ.SEND", "DQ.ACK", "DQ.ACKSEND", "DQ.NACK"}
"""Commands that are sent again after a lost reply: they have an id or receipts."""

CONFIRMED = _REPEATED | {"DQ.MSEND", "DQ.GROUPPUSH"}
"""Commands that a durable queue has confirmed."""


class NotConfirmed(Exception):
    """A durable queue has run a command, and it is not confirmed that this lasts.

    The queue is as `reply` says on the server that has replied, and may lose that again. If the server refused to confirm,
    the cause is its error; otherwise the time was over.
    """

    def __init__(self, why: str, *, reply: Any, synced: bool = False, replicas: int = 0) -> None:
        super().__init__(f"the command was run, but it is not confirmed that this lasts: {why}")
        self.reply = reply
        """The reply of the server to the command."""
        self.id: str | None = None
        """The id of the message, of `send`. It may be sent again with this id."""
        self.synced = synced
        """Whether the log of the server was synced."""
        self.replicas = replicas
        """How many replicas have confirmed."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled by its text, of which it cannot be made again.
        return copyreg.__newobj__, (NotConfirmed, *self.args), self.__dict__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Durable:
    """The confirmation of messages that a queue sends and settles. The default: its server has synced its log to the
    disk.

    That is WAITAOF, which Redis 7.2 and Valkey have. With `appendfsync everysec` it takes up to a second.
    """

    replicas: int = 0
    """How many replicas must have it too, in their logs, synced."""
    in_memory: bool = False
    """Whether it is enough that the replicas have the command in memory: WAIT, which all servers have."""
    timeout: Millis = 5_000
    """The longest time of one confirmation. It must be shorter than the socket timeout of the client."""

    def __post_init__(self) -> None:
        if self.in_memory and self.replicas < 1:
            raise ValueError("Durable with in_memory needs at least 1 of replicas")

    @property
    def words(self) -> list[Word]:
        """The command that confirms."""
        return [*(("WAIT",) if self.in_memory else ("WAITAOF", 1)), self.replicas, millis(self.timeout)]

    def check_client(self, client: Any) -> None:
        """Refuses a confirmation that would take longer than the client waits for a reply."""
        limit, timeout = socket_timeout(client), millis(self.timeout)
        if limit is not None and timeout >= limit * 1000:
            raise ValueError(f"a timeout of {timeout} ms does not fit into the client's socket_timeout of {limit} s")

    def check(self, reply: Any, confirmation: Any) -> None:
        """Raises NotConfirmed unless `confirmation`, the reply to `words`, confirms the command that had this reply."""
        if isinstance(confirmation, Exception):
            unknown = "unknown command" in str(confirmation)
            hint = " (WAITAOF needs Redis 7.2 or Valkey. With in_memory, replicas confirm on any server)" if unknown else ""
            raise NotConfirmed(f"{confirmation}{hint}", reply=reply) from confirmation
        synced, replicas = (0, confirmation) if self.in_memory else confirmation
        if replicas < self.replicas or not (synced or self.in_memory):
            log = "synced" if synced else "not synced"
            why = f"after {millis(self.timeout)} ms its log was {log}, and {replicas} of {self.replicas} replicas had it"
            raise NotConfirmed(why, reply=reply, synced=bool(synced), replicas=replicas)


def durable_of(given: bool | Durable, client: Any) -> Durable | None:
    """Returns the settings for the argument `durable` of a queue."""
    durable = Durable() if given is True else given or None
    if durable is not None:
        durable.check_client(client)
    return durable


class Trial(Generic[T]):
    """The tries of one call, until it is confirmed."""

    def __init__(self, durable: Durable, call: Call[T]) -> None:
        self.commands = [call.words, durable.words]
        """The commands to send in one pipeline."""
        self._durable = durable
        self._call = call
        self._is_send = call.words[0] == "DQ.SEND"
        self._first_reply: Any = None
        self._was_lost = False

    def result(self, reply: Any, confirmation: Any) -> T:
        """Returns the result that the call reads from its reply, if that is confirmed. Errors of the server are
        raised.
        """
        if isinstance(reply, Exception):
            raise reply
        if self._is_send:
            # A repetition finds that the id is taken, by the first try.
            reply = self._first_reply = reply if self._first_reply is None else self._first_reply
        try:
            self._durable.check(reply, confirmation)
        except NotConfirmed as missing:
            if self._is_send:
                words = self._call.words
                missing.id = text(words[words.index("ID", 3) + 1])
            raise
        if self._was_lost and not self._call.has_settled(reply):
            why = "the connection was lost, and then receipts were stale: the first try was done, or their leases are over"
            raise NotConfirmed(why, reply=reply)
        return self._call.read(reply)

    def may_go_on(self, error: Exception) -> bool:
        """Returns whether another try is right after this error."""
        if isinstance(error, NotConfirmed):
            # Receipts would be stale.
            return self._is_send and error.__cause__ is None
        may_go_on = is_transient(error) and self._call.words[0] in _REPEATED
        self._was_lost |= may_go_on
        return may_go_on
