"""A queue on the server, with a method for each command."""

import builtins
import time
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar, Unpack

import redis

from dqueue import calls
from dqueue.calls import Call, Next, Payload, Receipt
from dqueue.connection import Client, check_block, is_transient, pauses
from dqueue.message import Message
from dqueue.options import (
    Conditions,
    Instant,
    Millis,
    Pause,
    QueueOptions,
    SendOptions,
    State,
    millis,
)
from dqueue.records import Batch, Consumer, Explanation, Group, Info, Record, Schedule

T = TypeVar("T")


class Queue:
    """One queue.

    `client` is a redis-py client: `connect` makes a suitable one. `patience` is how long (ms) `send`
    repeats itself while the connection is down. Making a Queue does not touch the server; every method is one command
    and one round trip (`list` and `groups`: one a page).
    Errors of the server come as `redis.ResponseError`, lost connections as `redis.ConnectionError` or
    `redis.TimeoutError`.
    """

    def __init__(self, client: Client, key: str, *, patience: Millis = 10_000) -> None:
        self.client = client
        self.key = key
        self.patience = millis(patience)

    def __repr__(self) -> str:
        return f"Queue({self.key!r})"

    def _do(self, call: Call[T]) -> T:
        return call.read(self.client.execute_command(*call.words))

    # ---- creating ---------------------------------------------------------------------------------------------------

    def create(self, **options: Unpack[QueueOptions]) -> None:
        """DQ.CREATE: creates the queue with these options. Fails if it exists. Sending creates one with defaults."""
        self._do(calls.create(self.key, options))

    def alter(self, **options: Unpack[QueueOptions]) -> None:
        """DQ.ALTER: changes options of the queue, also for the messages in it."""
        self._do(calls.alter(self.key, options))

    def ensure(self, **options: Unpack[QueueOptions]) -> None:
        """Creates the queue, or gives it these options if it exists. To be called when a program starts."""
        try:
            self.create(**options)
        except redis.exceptions.ResponseError as error:
            if "queue already exists" not in str(error):
                raise
            if options:
                self.alter(**options)

    # ---- producing --------------------------------------------------------------------------------------------------

    def send(
        self, payload: Payload, *, id: str | None = None, replace: bool = False, **options: Unpack[SendOptions]
    ) -> str | None:
        """DQ.SEND: adds a message and returns its id, or None if the id was taken and nothing was added.

        While the connection is down it repeats itself, for `patience` ms, then raises. A message is not added twice by
        that: it always has an id, a new UUID if none is given. Of an id of yours, None may also mean that an earlier
        try got through. Set `dedup` on the queue to a minute or so: without it an id is free again as soon as
        its message is finished, and a try repeated later than that would add it anew.

        With `replace` a message of that id that has not been delivered is replaced.
        """
        return self._patiently(calls.send(self.key, payload, id, replace, options))

    def _patiently(self, call: Call[T]) -> T:
        """Runs a command that may be repeated, and repeats it while the connection is down."""
        deadline = time.monotonic() + self.patience / 1000
        for pause in pauses():
            try:
                return self._do(call)
            except Exception as error:
                if not is_transient(error) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
        raise AssertionError("pauses() does not end")

    def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> list[str]:
        """DQ.MSEND: adds all of the messages or none. Returns their ids.

        The server makes the ids, so a repetition adds the messages again: it is not repeated by itself, and an error
        of the connection leaves open whether they are there.
        """
        return self._do(calls.send_many(self.key, payloads, options))

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
    ) -> tuple[str, str] | None:
        """DQ.GROUPPUSH: adds a JSON object, and reads group, id, score and due time from it.

        Returns (group, id), or None if the id was taken.
        """
        paths = {"id_path": id_path, "score_path": score_path, "at_path": at_path, "id": id, "replace": replace}
        return self._do(calls.group_push(self.key, json, group_by, paths, options))

    # ---- consuming --------------------------------------------------------------------------------------------------

    def fetch(
        self,
        *,
        count: int = 1,
        block: Millis | None = None,
        ack: Sequence[Receipt] = (),
        results: Sequence[Payload] = (),
        lease: Millis | None = None,
        consumer: str | None = None,
        group: str | None = None,
        per_group: int | None = None,
        max_bytes: int | None = None,
        bind: bool = False,
        grace: Millis | None = None,
        token: str | bytes | None = None,
        no_ack: bool = False,
    ) -> list[Message]:
        """DQ.FETCH ... WITHMETA: acks the given messages, then takes up to `count` others. May return none.

        `results` holds a result for each message of `ack`, in the same order, or nothing.

        `block` waits that long (ms) for one. It must be shorter than the client's socket timeout (ValueError), as a
        reply that nobody reads is a delivery lost until its lease is over.

        `token`, with `consumer`: if the reply was lost, the same call gives the same messages once more. With `bind` the
        leases end when the connection does, `grace` ms later.
        """
        check_block(self.client, None if block is None else millis(block))
        options = {
            "count": count,
            "block": block,
            "lease": lease,
            "consumer": consumer,
            "group": group,
            "per_group": per_group,
            "max_bytes": max_bytes,
            "bind": bind,
            "grace": grace,
            "token": token,
            "no_ack": no_ack,
        }
        return self._do(calls.fetch(self.key, ack, results, options))

    def ack(self, *receipts: Receipt, result: Payload | None = None) -> int:
        """DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease."""
        return self._do(calls.ack(self.key, receipts, result))

    def ack_send(self, receipt: Receipt, *following: Next, result: Payload | None = None) -> list[str | None] | None:
        """DQ.ACKSEND: finishes a message and sends those that follow from it, all in one step.

        Returns their ids, with None for an id that was taken; or None, and nothing was done, if the lease was lost.
        """
        return self._do(calls.ack_send(self.key, receipt, following, result))

    def nack(
        self,
        *receipts: Receipt,
        delay: Millis | None = None,
        error: str | None = None,
        silent: bool = False,
        fatal: bool = False,
        note: str | None = None,
        pause: Pause | None = None,
    ) -> int:
        """DQ.NACK: fails messages. Returns how many failed. The others had lost their lease.

        `silent`: given back, as if it had not been delivered; with `delay` it is snoozed: delayed without a failure.
        `fatal`: dead at once. `note` stays with the message for its next attempt; "" removes it. `pause`, for example
        `("GROUP", 30_000)`, pauses its group or the queue in the same step.
        """
        options = {"delay": delay, "error": error, "silent": silent, "fatal": fatal, "note": note, "pause": pause}
        return self._do(calls.nack(self.key, receipts, options))

    def touch(self, lease: Millis, *receipts: Receipt, note: str | None = None) -> int:
        """DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over.

        `note` stays with the messages for their next attempt; "" removes it.
        """
        return self._do(calls.touch(self.key, lease, receipts, note))

    # ---- reading ----------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Record | None:
        """DQ.GET: returns everything about one message, or None if the id is unknown."""
        return self._do(calls.get(self.key, id))

    def list(
        self, state: State, *, group: str | None = None, type: str | None = None, rev: bool = False, page: int = 100
    ) -> Iterator[Record]:
        """DQ.LIST: yields all records in a state, in the order of that state. Fetches `page` of them at a time."""
        cursor: str | None = "0"
        while cursor is not None:
            options = {"cursor": cursor, "count": page, "group": group, "type": type, "rev": rev}
            step = self._do(calls.listing(self.key, state, options))
            for record in step.items:
                yield record
            cursor = step.cursor

    def find(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> Iterator[Record]:
        """DQ.FIND: yields the records in a state to which all conditions apply. A step examines `page` messages."""
        cursor: str | None = "0"
        while cursor is not None:
            step = self._do(calls.find(self.key, state, {"cursor": cursor, "count": page, **conditions}))
            for record in step.items:
                yield record
            cursor = step.cursor

    def redrive_found(self, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO REDRIVE: makes the dead messages to which all conditions apply pending. Returns how many."""
        return self._find_do("dead", "REDRIVE", page, conditions)

    def cancel_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO CANCEL: cancels the messages in a state to which all conditions apply. Returns how many."""
        return self._find_do(state, "CANCEL", page, conditions)

    def purge_found(self, state: State, *, page: int = 1000, **conditions: Unpack[Conditions]) -> int:
        """DQ.FIND DO PURGE: removes the messages in a state to which all conditions apply. Returns how many."""
        return self._find_do(state, "PURGE", page, conditions)

    def _find_do(self, state: State, act: str, page: int, conditions: Conditions) -> int:
        changed = 0
        cursor: str | None = "0"
        while cursor is not None:
            options = {"cursor": cursor, "count": page, **conditions}
            cursor, count = self._do(calls.find_do(self.key, state, act, options))
            changed += count
        return changed

    def peek(self, count: int = 1) -> builtins.list[Record]:
        """DQ.PEEK: returns the messages that `fetch` would take next, without taking them."""
        return self._do(calls.peek(self.key, count))

    def len(self, state: State | None = None) -> int:
        """DQ.LEN: returns the number of pending and running messages, or of those in one state."""
        return self._do(calls.length(self.key, state))

    def info(self) -> Info:
        """DQ.INFO: returns states, options and counters, under the names of the command reference."""
        return self._do(calls.queue_info(self.key))

    def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused"] | None = None, page: int = 100
    ) -> Iterator[Group]:
        """DQ.GROUPS: yields the groups that have messages, settings or a hold. Fetches `page` of them at a time."""
        cursor: str | None = "0"
        while cursor is not None:
            step = self._do(calls.groups(self.key, {"cursor": cursor, "count": page, "state": state}))
            for group in step.items:
                yield group
            cursor = step.cursor

    def batches(self, *, page: int = 100) -> Iterator[Batch]:
        """DQ.BATCHES: yields the open batches. Fetches `page` of them at a time."""
        cursor: str | None = "0"
        while cursor is not None:
            step = self._do(calls.batches(self.key, {"cursor": cursor, "count": page}))
            for batch in step.items:
                yield batch
            cursor = step.cursor

    def consumers(self) -> builtins.list[Consumer]:
        """DQ.CONSUMERS: returns the consumers that fetched under a name, and what they hold."""
        return self._do(calls.consumers(self.key))

    def explain(self, id: str) -> Explanation | None:
        """DQ.EXPLAIN: returns why a message is in its state, or None for an unknown id."""
        return self._do(calls.explain(self.key, id))

    def wait(self, id: str, timeout: Millis) -> tuple[str, str | None] | None:
        """DQ.WAIT: waits until the message has ended. Returns (state, result or error).

        Returns None at the timeout, or if the id is unknown.

        The timeout (ms) must be shorter than the client's socket timeout (ValueError).
        """
        check_block(self.client, millis(timeout))
        return self._do(calls.wait(self.key, id, millis(timeout)))

    # ---- changing ---------------------------------------------------------------------------------------------------

    def cancel(self, *ids: str) -> builtins.list[str | None]:
        """DQ.CANCEL: cancels messages. Returns the state that each of them had, or None for an unknown one."""
        return self._do(calls.cancel(self.key, ids))

    def reschedule(self, id: str, *, delay: Millis | None = None, at: Instant | None = None) -> bool:
        """DQ.RESCHEDULE: changes the due time. Returns False if the message was not pending."""
        return self._do(calls.reschedule(self.key, id, delay, at))

    def update(self, id: str, payload: Payload) -> bool:
        """DQ.UPDATE: replaces the payload. Returns False if the message was not pending."""
        return self._do(calls.update(self.key, id, payload))

    def redrive(self, *ids: str, count: int | None = None) -> int:
        """DQ.REDRIVE: makes dead messages pending again: the given ones, or else up to `count`, or all.

        Returns how many.
        """
        return self._do(calls.redrive(self.key, ids, count))

    def purge(self, *, state: State | None = None, group: str | None = None) -> int:
        """DQ.PURGE: removes messages for good. Returns how many."""
        return self._do(calls.purge(self.key, {"state": state, "group": group}))

    def pause(self, *, group: str | None = None, for_: Millis | None = None) -> None:
        """DQ.PAUSE: stops deliveries of the queue or of a group, for this long or until `resume`."""
        self._do(calls.pause(self.key, {"group": group, "for_": for_}))

    def resume(self, *, group: str | None = None) -> None:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        self._do(calls.resume(self.key, group))

    def set_group(
        self,
        group: str,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: tuple[int, Millis] | Literal[0] | None = None,
    ) -> None:
        """DQ.GROUPSET: changes settings of a group. Concurrency 0 and rate 0 restore those of the queue."""
        options = {"weight": weight, "concurrency": concurrency, "rate": rate}
        self._do(calls.set_group(self.key, group, options))

    # ---- schedules --------------------------------------------------------------------------------------------------

    def schedule(
        self,
        name: str,
        payload: Payload,
        *,
        cron: str | None = None,
        tz: str | None = None,
        every: Millis | None = None,
        start: Instant | None = None,
        missed: Literal["SKIP", "ONCE", "ALL"] | None = None,
        overlap: Literal["QUEUE", "SKIP"] | None = None,
        **options: Unpack[SendOptions],
    ) -> int:
        """DQ.SCHEDULE: makes the server send the payload at these times. Returns the first of them, in Unix ms."""
        timing = {"cron": cron, "tz": tz, "every": every, "start": start}
        given = {**options, "missed": missed, "overlap": overlap}
        return self._do(calls.schedule(self.key, name, payload, timing, given))

    def unschedule(self, name: str) -> bool:
        """DQ.UNSCHEDULE: removes a schedule. Returns whether it existed."""
        return self._do(calls.unschedule(self.key, name))

    def schedules(self) -> builtins.list[Schedule]:
        """DQ.SCHEDULES: returns all schedules."""
        return self._do(calls.schedules(self.key))

    # ---- time -------------------------------------------------------------------------------------------------------

    def tick(self) -> Info:
        """DQ.TICK: processes everything that is due, as the server does by itself. Returns how much of each kind."""
        return self._do(calls.tick(self.key, {}))
