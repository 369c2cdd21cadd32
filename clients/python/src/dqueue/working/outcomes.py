"""The possible outcomes of a message that a handler gets, and the command that follows from each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dqueue.protocol import calls
from dqueue.protocol.calls import Call, Next, Payload, Signal
from dqueue.protocol.message import Message, by_queue
from dqueue.protocol.options import Millis, Pause
from dqueue.protocol.records import Record

_ERROR_LENGTH = 1000


class Retry(Exception):
    """Raised by a handler to fail and be tried again after `delay` ms. None means the backoff of the queue."""

    def __init__(self, error: str = "", *, delay: Millis | None = None) -> None:
        super().__init__(error)
        self.delay = delay


class Reject(Exception):
    """Raised by a handler if the message can never succeed. It is dead at once, with the reason `rejected`."""


class Snooze(Exception):
    """Raised by a handler to give its message back without blame: no attempt and no failure is counted.

    The message comes back after `delay` ms, or at once without it. `pause`, for example `("GROUP", 30_000)`, pauses its
    group or the queue in the same step: for a partner that replies 429 with a Retry-After.
    """

    def __init__(self, error: str = "", *, delay: Millis | None = None, pause: Pause | None = None) -> None:
        super().__init__(error)
        self.delay = delay
        self.pause = pause


class Park(Exception):
    """Raised by a handler whose message has to wait for a signal (`Queue.signal`): an approval, the answer of a partner.

    No worker is bound meanwhile, and no attempt and no failure is counted. The next delivery has the text of the signal
    as `message.signal`. `for_` (at least 1 ms) bounds the wait: it is delivered then, and `message.signal` is None. `note`
    stays with the message for that delivery.
    """

    def __init__(self, error: str = "", *, for_: Millis | None = None, note: str | None = None) -> None:
        super().__init__(error)
        self.for_ = for_
        self.note = note


class Follow:
    """Returned by a handler: its message is done, and these messages and signals follow from it, in one step (DQ.ACKSEND).

    A crash leaves all of that or nothing. If the server refuses it (a full queue, say), the message has failed.
    """

    def __init__(self, *following: Next | Signal, result: Payload | None = None) -> None:
        self.following = following
        self.result = result


Outcome = Payload | Follow | None
"""The return value of a handler: nothing, the result of its message, or the messages that follow from it."""


def may_have_killed(message: Message, lost_workers: int) -> bool:
    """Returns whether a message may have taken more workers with it than it may. Where RETRIES is a limit, the server counts."""
    return 0 < lost_workers < message.attempt and message.retries_left == -1


def given_up(record: Record | None, lost_workers: int) -> Reject | None:
    """Returns the end of a message that has killed this many workers."""
    if record is None or record.timeouts < lost_workers:
        return None
    return Reject(f"given up: {record.timeouts} workers were lost with it")


class Ended(Exception):
    """Says that a handler has ended by something that is no Exception, such as SystemExit. It is in `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _text(error: BaseException) -> str:
    """Returns the text of an error. Its methods are those of the program, and may raise whatever they like.

    Half of a surrogate pair, as it comes from truncated JSON, cannot be sent: it is written as an escape.
    """
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except BaseException as other:
        return f"its text raised {type(other).__name__}"


def described(error: BaseException) -> str:
    """Returns the text that is kept of an error with its message: its kind and its text."""
    return f"{type(error).__name__}: {_text(error)}"[:_ERROR_LENGTH]


def failure(message: Message, error: BaseException) -> Call[int]:
    """Returns the command for a message whose handler raised `error`."""
    key = message.queue
    if isinstance(error, Ended):
        error = error.error
    if isinstance(error, Retry):
        return calls.nack(key, [message], {"delay": error.delay, "error": _text(error) or None})
    if isinstance(error, Snooze):
        options = {"delay": error.delay, "pause": error.pause, "error": _text(error) or None, "silent": True}
        return calls.nack(key, [message], options)
    if isinstance(error, Park):
        waits = True if error.for_ is None else error.for_
        options = {"silent": True, "park": waits, "note": error.note, "error": _text(error) or None}
        return calls.nack(key, [message], options)
    if isinstance(error, Reject):
        return calls.nack(key, [message], {"error": _text(error) or None, "fatal": True})
    return calls.nack(key, [message], {"error": described(error)})


@dataclass(frozen=True, slots=True)
class Done:
    """A message to be acked, and its result if it has one."""

    message: Message
    result: Payload | None = None


def success(message: Message, outcome: Outcome) -> Done | Call[Any]:
    """Returns the command for a message whose handler returned `outcome`, or that it can be acked with others."""
    if isinstance(outcome, Follow) and outcome.following:
        return calls.ack_send(message.queue, message, outcome.following, outcome.result, message._effects)
    result = outcome.result if isinstance(outcome, Follow) else outcome
    effects = message._effects
    if not effects and message.cost is None and (result is None or isinstance(result, (str, bytes))):
        return Done(message, result)
    # A cost and effects belong to one message. A result that is no text is refused, and this must not affect other messages.
    return calls.ack(message.queue, [message], result, message.cost, effects)


def given_back(messages: Sequence[Message]) -> list[Call[int]]:
    """Returns the commands for messages that a stopping worker does not finish, one for each queue."""
    return [calls.nack(key, of_queue, {"silent": True}) for key, of_queue in by_queue(messages).items()]


def renewed(messages: Sequence[Message], lease: Millis) -> list[Call[int]]:
    """Returns the commands that extend the leases of messages, one for each queue."""
    return [calls.touch(key, lease, of_queue) for key, of_queue in by_queue(messages).items()]


def acked(done: Sequence[Done]) -> list[Call[int]]:
    """Returns the commands that ack these: one for each queue, and one for each result."""
    plain = [one.message for one in done if one.result is None]
    together = [calls.ack(key, of_queue, None) for key, of_queue in by_queue(plain).items()]
    single = [calls.ack(one.message.queue, [one.message], one.result) for one in done if one.result is not None]
    return together + single
