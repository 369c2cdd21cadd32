"""The verbs of a queue, each as a call or a series of calls.

Nothing here waits. The two modules `caller` run the calls, and make methods of `Queue` of these verbs.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, Unpack

from dqueue.protocol import calls, records
from dqueue.protocol.calls import Call, Next, Page, Payload, Receipt, Signal
from dqueue.protocol.client import check_block
from dqueue.protocol.control_verbs import ControlVerbs
from dqueue.protocol.effects import Effects
from dqueue.protocol.message import Message
from dqueue.protocol.options import (
    Conditions,
    FetchOptions,
    Instant,
    Millis,
    NackOptions,
    QueueOptions,
    SendOptions,
    State,
    millis,
)

T = TypeVar("T")

Steps = Generator[Call[Any], Any, T]
"""A verb of several calls: it yields each call, gets the result or the error of the call, and returns a result."""

Pages = Iterable[Callable[[str], Call[Page[T]]]]
"""A verb that lists. It is made of one function for each queue, which returns the call for the page at a cursor."""


def explain(method: Callable[..., Any], verb: Callable[..., Any]) -> None:
    """Gives a method name, text and signature of its verb, without what the verb returns."""
    functools.update_wrapper(method, verb)
    signature = inspect.signature(verb).replace(return_annotation=inspect.Signature.empty)
    method.__dict__["__signature__"] = signature


def step(call: Call[T]) -> Steps[T]:
    """Makes one call, as a part of other steps."""
    read: T = yield call
    return read


def all_changed(key: str, state: str, act: str, options: Mapping[str, Any]) -> Steps[int]:
    """DQ.FIND with DO, to the end. Returns how many messages were changed."""
    changed = 0
    cursor: str | None = "0"
    while cursor is not None:
        cursor, count = yield from step(calls.find_do(key, state, act, {"cursor": cursor, **options}))
        changed += count
    return changed


class HasKey(Protocol):
    """A queue."""

    key: str


class QueueVerbs(ControlVerbs):
    """The verbs of one queue. `client` is only asked for its settings."""

    def __init__(self, client: Any, key: str) -> None:
        self.client = client
        self.key = key

    # ---- creating ---------------------------------------------------------------------------------------------------

    def create(self, **options: Unpack[QueueOptions]) -> Call[None]:
        """DQ.CREATE: creates the queue with these options. Fails if it exists. Sending creates one with defaults."""
        return calls.create(self.key, options)

    def alter(self, **options: Unpack[QueueOptions]) -> Call[None]:
        """DQ.ALTER: changes options of the queue, also for the messages in it."""
        return calls.alter(self.key, options)

    def ensure(self, **options: Unpack[QueueOptions]) -> Steps[None]:
        """Creates the queue, or gives it these options if it exists. To be called when a program starts."""
        is_new = yield from step(calls.create_if_missing(self.key, options))
        if not is_new and options:
            yield from step(self.alter(**options))

    # ---- producing --------------------------------------------------------------------------------------------------

    def send(
        self, payload: Payload, *, id: str | None = None, replace: bool = False, **options: Unpack[SendOptions]
    ) -> Call[str | None]:
        """DQ.SEND: adds a message and returns its id, or None if the id was taken and nothing was added.

        While the connection is down it repeats itself, for `patience` ms, then raises. A message is not added twice by
        that: it always has an id, a new UUID if none is given. For an id of yours, None may also mean that an earlier
        try got through. Set `dedup` on the queue to a minute or so: without it an id is free again as soon as its
        message is finished, and a try repeated later than that would add it anew.

        With `replace` a message of that id that has not been delivered is replaced. With `rerun`, too, one that is
        running is sent once more with this payload when it has ended.
        """
        return calls.send(self.key, payload, id, replace, options)

    def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> Call[list[str]]:
        """DQ.MSEND: adds all of the messages or none. Returns their ids.

        The server makes the ids, so a repetition adds the messages again: it is not repeated by itself, and an error
        of the connection leaves open whether they are there.
        """
        return calls.send_many(self.key, payloads, options)

    def group_push(
        self,
        json: Payload,
        group_by: Sequence[str],
        *,
        id_path: str | None = None,
        score_path: str | None = None,
        at_path: str | None = None,
        id: str | None = None,
        replace: bool = False,
        **options: Unpack[SendOptions],
    ) -> Call[tuple[str, str] | None]:
        """DQ.GROUPPUSH: adds a JSON object, and reads group, id, score and due time from it.

        Returns (group, id), or None if the id was taken.
        """
        paths = {"id_path": id_path, "score_path": score_path, "at_path": at_path, "id": id, "replace": replace}
        return calls.group_push(self.key, json, group_by, paths, options)

    # ---- consuming --------------------------------------------------------------------------------------------------

    def fetch(
        self,
        *,
        ack: Sequence[Receipt] = (),
        results: Sequence[Payload] = (),
        apply: Effects | None = None,
        group: str | None = None,
        **options: Unpack[FetchOptions],
    ) -> Call[list[Message]]:
        """DQ.FETCH ... WITHMETA: acks the given messages, then takes up to `count` others. May return none.

        `results` holds a result for each message of `ack`, in the same order, or nothing. With `group` it takes messages
        of that group only. `apply` goes with the one message of `ack`; an error of it fetches nothing.

        `block` waits that long (ms) for one. It must be shorter than the client's socket timeout (ValueError), as a
        reply that nobody reads is a delivery lost until its lease is over.

        `token`, with `consumer`: if the reply was lost, the same call gives the same messages once more. With `bind` the
        leases end when the connection does, `grace` ms later.
        """
        self._check_block(options)
        return calls.fetch(self.key, ack, results, {"count": 1, **options, "group": group}, apply)

    def fetch_first(self, others: Sequence[HasKey], **options: Unpack[FetchOptions]) -> Call[list[Message]]:
        """DQ.MFETCH ... WITHMETA: takes messages of the first of several queues that can give: this one, then the others.

        `message.queue` says which it was. The options are those of `fetch`. In a cluster the queues must be in one slot.
        """
        self._check_block(options)
        return calls.fetch_first([self.key, *(other.key for other in others)], {"count": 1, **options})

    def _check_block(self, options: FetchOptions) -> None:
        block = options.get("block")
        check_block(self.client, None if block is None else millis(block))

    def ack(
        self, *receipts: Receipt, result: Payload | None = None, cost: int | None = None, apply: Effects | None = None
    ) -> Call[int]:
        """DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease.

        `cost` is what each of them has really taken of its limits. `apply`, with one message, changes other Redis keys in
        the same step; `apply.applied` is then what the plain commands reply.
        """
        return calls.ack(self.key, receipts, result, cost, apply)

    def ack_send(
        self, receipt: Receipt, *following: Next | Signal, result: Payload | None = None, apply: Effects | None = None
    ) -> Call[list[str | bool | None] | None]:
        """DQ.ACKSEND: finishes a message and sends the messages and signals that follow from it, all in one step.

        Returns the ids, with None for one that was taken, and what `signal` returns for each signal; or None, and nothing
        was done, if the lease was lost.
        """
        return calls.ack_send(self.key, receipt, following, result, apply)

    def nack(self, *receipts: Receipt, **options: Unpack[NackOptions]) -> Call[int]:
        """DQ.NACK: fails messages. Returns how many failed. The others had lost their lease.

        `silent`: given back, as if it had not been delivered; with `delay` it is snoozed: delayed without a failure; with
        `park` it is held until a signal comes, for that long at most, or without end (True).
        `fatal`: dead at once. `note` stays with the message for its next attempt; "" removes it. `pause`, for example
        `("GROUP", 30_000)`, pauses its group or the queue in the same step.
        """
        return calls.nack(self.key, receipts, options)

    def touch(self, lease: Millis, *receipts: Receipt, note: str | None = None) -> Call[int]:
        """DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over.

        `note` stays with the messages for their next attempt; "" removes it.
        """
        return calls.touch(self.key, lease, receipts, note)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Call[records.Record | None]:
        """DQ.GET: returns all fields of one message, or None if the id is unknown."""
        return calls.get(self.key, id)

    def list(
        self, state: State, *, group: str | None = None, type: str | None = None, rev: bool = False, count: int = 100
    ) -> Pages[records.Record]:
        """DQ.LIST: yields all records in a state, in the order of that state. Fetches `count` of them at a time.

        A message that moves within the state meanwhile (`touch`, `reschedule`) may come twice or not at all.
        """
        options = {"count": count, "group": group, "type": type, "rev": rev}
        return [lambda cursor: calls.listing(self.key, state, {"cursor": cursor, **options})]

    def find(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Pages[records.Record]:
        """DQ.FIND: yields the records in a state to which all conditions apply. A step examines `count` messages."""
        options = {"count": count, **conditions}
        return [lambda cursor: calls.find(self.key, state, {"cursor": cursor, **options})]

    def redrive_found(self, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO REDRIVE: makes the dead messages to which all conditions apply pending. Returns how many."""
        return all_changed(self.key, "dead", "REDRIVE", {"count": count, **conditions})

    def cancel_found(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO CANCEL: cancels the messages in a state to which all conditions apply. Returns how many."""
        return all_changed(self.key, state, "CANCEL", {"count": count, **conditions})

    def purge_found(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO PURGE: removes the messages in a state to which all conditions apply. Returns how many."""
        return all_changed(self.key, state, "PURGE", {"count": count, **conditions})

    def peek(self, count: int = 1) -> Call[builtins.list[records.Record]]:
        """DQ.PEEK: returns the messages that `fetch` would take next, without taking them."""
        return calls.peek(self.key, count)

    def len(self, state: State | None = None) -> Call[int]:
        """DQ.LEN: returns the number of pending and running messages, or of those in one state."""
        return calls.length(self.key, state)

    def info(self) -> Call[records.Info]:
        """DQ.INFO: returns states, options and counters, under the names of the command reference."""
        return calls.queue_info(self.key)

    def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused", "held"] | None = None, count: int = 100
    ) -> Pages[records.Group]:
        """DQ.GROUPS: yields the groups that have messages, settings or a hold. Fetches `count` of them at a time."""
        options = {"count": count, "state": state}
        return [lambda cursor: calls.groups(self.key, {"cursor": cursor, **options})]

    def batches(self, *, count: int = 100) -> Pages[records.Batch]:
        """DQ.BATCHES: yields the open batches. Fetches `count` of them at a time."""
        return [lambda cursor: calls.batches(self.key, {"cursor": cursor, "count": count})]

    def children(self, id: str, *, count: int = 100) -> Pages[records.Child]:
        """DQ.CHILDREN: yields the children of a message, and their states."""
        return [lambda cursor: calls.children(self.key, id, {"cursor": cursor, "count": count})]

    def limits(self, *, count: int = 100) -> Pages[records.Limit]:
        """DQ.LIMITS: yields the limits with names, and each name of which something is used."""
        return [lambda cursor: calls.limits(self.key, {"cursor": cursor, "count": count})]

    def consumers(self) -> Call[builtins.list[records.Consumer]]:
        """DQ.CONSUMERS: returns the consumers that fetched under a name, and the messages that they hold."""
        return calls.consumers(self.key)

    def explain(self, id: str) -> Call[records.Explanation | None]:
        """DQ.EXPLAIN: returns why a message is in its state, or None for an unknown id."""
        return calls.explain(self.key, id)

    def wait(self, id: str, timeout: Millis) -> Call[tuple[str, str | None] | None]:
        """DQ.WAIT: waits until the message has ended. Returns (state, result or error).

        Returns None at the timeout, or if the id is unknown.

        The timeout (ms) must be shorter than the client's socket timeout (ValueError).
        """
        check_block(self.client, millis(timeout))
        return calls.wait(self.key, id, millis(timeout))

    # ---- changing ---------------------------------------------------------------------------------------------------

    def cancel(self, *ids: str) -> Call[builtins.list[str | None]]:
        """DQ.CANCEL: cancels messages. Returns the state that each of them had, or None for an unknown one."""
        return calls.cancel(self.key, ids)

    def reschedule(self, id: str, *, delay: Millis | None = None, at: Instant | None = None) -> Call[bool]:
        """DQ.RESCHEDULE: changes the due time. Returns False if the message was not pending."""
        return calls.reschedule(self.key, id, delay, at)

    def update(self, id: str, payload: Payload) -> Call[bool]:
        """DQ.UPDATE: replaces the payload. Returns False if the message was not pending."""
        return calls.update(self.key, id, payload)

    def signal(self, id: str, data: Payload | None = None) -> Call[bool]:
        """DQ.SIGNAL: gives a message this text, and ends its wait for it. Returns False if it is unknown or has ended."""
        return calls.signal(self.key, id, data)

    def redrive(self, *ids: str, count: int | None = None) -> Call[int]:
        """DQ.REDRIVE: makes dead messages pending again: the given ones, or else up to `count`, or all.

        Returns how many.
        """
        return calls.redrive(self.key, ids, count)

    def purge(self, *, state: State | None = None, group: str | None = None) -> Call[int]:
        """DQ.PURGE: removes messages for good. Returns how many."""
        return calls.purge(self.key, {"state": state, "group": group})

    # ---- time -------------------------------------------------------------------------------------------------------

    def tick(self, *, advance: Millis | None = None, to: Instant | None = None) -> Call[records.Info]:
        """DQ.TICK: processes all due events, or moves a manual clock by a span or to a time. Returns how much of
        each kind.
        """
        return calls.tick(self.key, {"advance": advance, "to": to})
