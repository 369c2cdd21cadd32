"""The verbs of a family, each as a series of calls."""

from __future__ import annotations

import builtins
import uuid
from collections.abc import Sequence
from typing import Any, Literal, Unpack

from dqueue.protocol import calls, records
from dqueue.protocol.calls import Next, Payload, Signal
from dqueue.protocol.effects import Effects
from dqueue.protocol.message import Message, by_queue
from dqueue.protocol.options import (
    Conditions,
    GroupOptions,
    Instant,
    LimitOptions,
    Millis,
    NackOptions,
    QueueOptions,
    ScheduleOptions,
    SendOptions,
    State,
)
from dqueue.protocol.routing import Layout
from dqueue.protocol.verbs import Pages, QueueVerbs, Steps, step


class FamilyVerbs:
    """The verbs of a family, except those that ask nodes. `client` is only asked for its settings."""

    def __init__(self, client: Any, layout: Layout) -> None:
        self.client = client
        self.layout = layout

    # ---- the queues -------------------------------------------------------------------------------------------------

    def _queues(self) -> builtins.list[QueueVerbs]:
        return [QueueVerbs(self.client, key) for key in self.layout.keys()]

    def _homes(self, group: str | None, id: str = "") -> builtins.list[QueueVerbs]:
        """Returns the queues in which a message may be, the one that is tried first before the other."""
        return [QueueVerbs(self.client, key) for key in self.layout.homes(id if group is None else group)]

    def _of(self, group: str | None) -> builtins.list[QueueVerbs]:
        """Returns the queues of a group, or all queues."""
        return self._queues() if group is None else self._homes(group)

    # ---- creating ---------------------------------------------------------------------------------------------------

    def create(self, **options: Unpack[QueueOptions]) -> Steps[None]:
        """Creates all queues with these options. Fails if one exists."""
        for queue in self._queues():
            yield from step(queue.create(**options))

    def alter(self, **options: Unpack[QueueOptions]) -> Steps[None]:
        """Changes options of all queues, also for the messages in them."""
        for queue in self._queues():
            yield from step(queue.alter(**options))

    def ensure(self, **options: Unpack[QueueOptions]) -> Steps[None]:
        """Creates the queues that are missing, and gives all of them these options."""
        for queue in self._queues():
            yield from queue.ensure(**options)

    # ---- producing --------------------------------------------------------------------------------------------------

    def send(
        self, payload: Payload, *, id: str | None = None, replace: bool = False, **options: Unpack[SendOptions]
    ) -> Steps[str | None]:
        """Adds a message to the queue of its group, or of its id, as `Queue.send` does."""
        own = id or str(uuid.uuid4())
        group = options.get("group")
        home, *others = self._homes(group, own)
        if others and group is not None:
            (old,) = others
            held: SendOptions = {**options, "if_group": True}
            # Without an id of its own, calls.send could not distinguish a taken id from a group without messages.
            if (yield from step(calls.send(old.key, payload, own, replace, held))) is not None:
                return own
            if (yield from step(old.get(own))) is not None:
                return own if id is None else None
        sent = yield from step(calls.send(home.key, payload, own, replace, options))
        # The id of this call can only be taken by an earlier try of it.
        return own if id is None and not options.get("if_group") else sent

    def send_many(self, payloads: Sequence[Payload], **options: Unpack[SendOptions]) -> Steps[builtins.list[str]]:
        """DQ.MSEND: adds all of the messages to one queue, or none: that of their group, or any."""
        group = options.get("group")
        home, *others = self._homes(group, str(uuid.uuid4()))
        if others and group is not None:
            held: SendOptions = {**options, "if_group": True}
            if sent := (yield from step(others[0].send_many(payloads, **held))):
                return sent
        return (yield from step(home.send_many(payloads, **options)))

    # ---- consuming --------------------------------------------------------------------------------------------------

    def ack(
        self, *messages: Message, result: Payload | None = None, cost: int | None = None, apply: Effects | None = None
    ) -> Steps[int]:
        """DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease."""
        count = 0
        for key, own in by_queue(messages).items():
            count += yield from step(calls.ack(key, own, result, cost, apply))
        return count

    def ack_send(
        self, message: Message, *following: Next | Signal, result: Payload | None = None, apply: Effects | None = None
    ) -> Steps[builtins.list[str | bool | None] | None]:
        """DQ.ACKSEND: finishes a message and sends further ones to its queue, all in one step.

        They must be of the group of the message, or without a group, or name a queue in the same hash slot. So must the
        messages that get a signal.
        """
        return (yield from step(calls.ack_send(message.queue, message, following, result, apply)))

    def nack(self, *messages: Message, **options: Unpack[NackOptions]) -> Steps[int]:
        """DQ.NACK: fails messages, as `Queue.nack` does. Returns how many failed. The others had lost their lease."""
        count = 0
        for key, own in by_queue(messages).items():
            count += yield from step(calls.nack(key, own, options))
        return count

    def touch(self, lease: Millis, *messages: Message, note: str | None = None) -> Steps[int]:
        """DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over."""
        count = 0
        for key, own in by_queue(messages).items():
            count += yield from step(calls.touch(key, lease, own, note))
        return count

    # ---- one message ------------------------------------------------------------------------------------------------

    def get(self, id: str, *, group: str | None = None) -> Steps[records.Record | None]:
        """DQ.GET: returns all fields of one message, or None if the id is unknown."""
        found = None
        for queue in self._homes(group, id):
            found = found or (yield from step(queue.get(id)))
        return found

    def explain(self, id: str, *, group: str | None = None) -> Steps[records.Explanation | None]:
        """DQ.EXPLAIN: says why a message is in its state. Returns None if the id is unknown."""
        found = None
        for queue in self._homes(group, id):
            found = found or (yield from step(queue.explain(id)))
        return found

    def cancel(self, id: str, *, group: str | None = None) -> Steps[str | None]:
        """DQ.CANCEL: cancels a message. Returns the state that it had, or None if the id is unknown."""
        state = None
        for queue in self._homes(group, id):
            state = state or (yield from step(queue.cancel(id)))[0]
        return state

    def reschedule(
        self, id: str, *, group: str | None = None, delay: Millis | None = None, at: Instant | None = None
    ) -> Steps[bool]:
        """DQ.RESCHEDULE: changes the due time. Returns False if the message was not pending."""
        is_done = False
        for queue in self._homes(group, id):
            is_done = is_done or (yield from step(queue.reschedule(id, delay=delay, at=at)))
        return is_done

    def update(self, id: str, payload: Payload, *, group: str | None = None) -> Steps[bool]:
        """DQ.UPDATE: replaces the payload. Returns False if the message was not pending."""
        is_done = False
        for queue in self._homes(group, id):
            is_done = is_done or (yield from step(queue.update(id, payload)))
        return is_done

    def signal(self, id: str, data: Payload | None = None, *, group: str | None = None) -> Steps[bool]:
        """DQ.SIGNAL: gives a message this text, and ends its wait for it. Returns False if it is unknown or has ended."""
        is_done = False
        for queue in self._homes(group, id):
            is_done = is_done or (yield from step(queue.signal(id, data)))
        return is_done

    def wait(self, id: str, timeout: Millis, *, group: str | None = None) -> Steps[tuple[str, str | None] | None]:
        """DQ.WAIT: waits until a message has ended, as `Queue.wait` does."""
        home, *others = self._homes(group, id)
        for queue in others:
            if (yield from step(queue.get(id))) is not None:
                home = queue
        return (yield from step(home.wait(id, timeout)))

    # ---- all messages -----------------------------------------------------------------------------------------------

    def list(
        self, state: State, *, group: str | None = None, type: str | None = None, rev: bool = False, count: int = 100
    ) -> Pages[records.Record]:
        """DQ.LIST: yields all records in a state, one queue after the other.

        A message that moves within the state meanwhile (`touch`, `reschedule`) may come twice or not at all.
        """
        for queue in self._of(group):
            yield from queue.list(state, group=group, type=type, rev=rev, count=count)

    def find(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Pages[records.Record]:
        """DQ.FIND: yields the records in a state to which all conditions apply, one queue after the other."""
        for queue in self._of(conditions.get("group")):
            yield from queue.find(state, count=count, **conditions)

    def redrive_found(self, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO REDRIVE: makes the dead messages to which all conditions apply pending. Returns how many."""
        changed = 0
        for queue in self._of(conditions.get("group")):
            changed += yield from queue.redrive_found(count=count, **conditions)
        return changed

    def cancel_found(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO CANCEL: cancels the messages in a state to which all conditions apply. Returns how many."""
        changed = 0
        for queue in self._of(conditions.get("group")):
            changed += yield from queue.cancel_found(state, count=count, **conditions)
        return changed

    def purge_found(self, state: State, *, count: int = 1000, **conditions: Unpack[Conditions]) -> Steps[int]:
        """DQ.FIND DO PURGE: removes the messages in a state to which all conditions apply. Returns how many."""
        changed = 0
        for queue in self._of(conditions.get("group")):
            changed += yield from queue.purge_found(state, count=count, **conditions)
        return changed

    def peek(self, count: int = 1) -> Steps[builtins.list[records.Record]]:
        """DQ.PEEK: returns up to `count` messages that can be delivered now, one queue after the other."""
        found: builtins.list[records.Record] = []
        for queue in self._queues():
            if len(found) < count:
                found += yield from step(queue.peek(count - len(found)))
        return found

    def redrive(self, *, count: int | None = None) -> Steps[int]:
        """DQ.REDRIVE: makes all dead messages pending again, or up to `count` of each queue. Returns how many."""
        redriven = 0
        for queue in self._queues():
            redriven += yield from step(queue.redrive(count=count))
        return redriven

    def purge(self, *, state: State | None = None, group: str | None = None) -> Steps[int]:
        """DQ.PURGE: removes messages for good. Returns how many."""
        count = 0
        for queue in self._of(group):
            count += yield from step(queue.purge(state=state, group=group))
        return count

    def consumers(self) -> Steps[builtins.list[records.Consumer]]:
        """DQ.CONSUMERS: returns the consumers of all queues. One that has fetched from several is there several times."""
        found: builtins.list[records.Consumer] = []
        for queue in self._queues():
            found += yield from step(queue.consumers())
        return found

    def batches(self, *, count: int = 100) -> Pages[records.Batch]:
        """DQ.BATCHES: yields the open batches, one queue after the other. A batch is of one queue."""
        for queue in self._queues():
            yield from queue.batches(count=count)

    def children(self, id: str, *, group: str | None = None, count: int = 100) -> Pages[records.Child]:
        """DQ.CHILDREN: yields the children of a message, and their states."""
        for queue in self._homes(group, id):
            yield from queue.children(id, count=count)

    def limits(self, *, count: int = 100) -> Pages[records.Limit]:
        """DQ.LIMITS: yields the limits with names, one queue after the other."""
        for queue in self._queues():
            yield from queue.limits(count=count)

    # ---- groups and pauses ------------------------------------------------------------------------------------------

    def groups(
        self, *, state: Literal["ready", "running", "blocked", "paused", "held"] | None = None, count: int = 100
    ) -> Pages[records.Group]:
        """DQ.GROUPS: yields the groups that have messages, settings or a hold, one queue after the other."""
        for queue in self._queues():
            yield from queue.groups(state=state, count=count)

    def moving(self) -> Steps[int]:
        """Returns how many groups still have messages in the queue that they had before the family has grown.

        If there are none, `grown_from` is needed no more. O(groups of the old queues).
        """
        count = 0
        for key in self.layout.old_keys():
            cursor: str | None = "0"
            while cursor is not None:
                page = yield from step(calls.groups(key, {"cursor": cursor, "count": 1000}))
                cursor = page.cursor
                count += sum(
                    self.layout.is_moving(key, group.group) and group.waiting + group.running > 0
                    for group in page.items
                )
        return count

    def pause(self, *, group: str | None = None, for_: Millis | None = None) -> Steps[None]:
        """DQ.PAUSE: stops deliveries of all queues or of a group, for this long or until `resume`."""
        for queue in self._of(group):
            yield from step(queue.pause(group=group, for_=for_))

    def resume(self, *, group: str | None = None) -> Steps[None]:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        for queue in self._of(group):
            yield from step(queue.resume(group=group))

    def set_group(self, group: str, **options: Unpack[GroupOptions]) -> Steps[None]:
        """DQ.GROUPSET: changes settings of a group. Concurrency 0 and rate 0 restore those of the queue."""
        for queue in self._homes(group):
            yield from step(queue.set_group(group, **options))

    def limit(self, name: str, **options: Unpack[LimitOptions]) -> Steps[None]:
        """DQ.LIMIT: limits the messages that name it in `limits`, in each queue separately. Without an option it is
        removed.
        """
        for queue in self._queues():
            yield from step(queue.limit(name, **options))

    # ---- schedules --------------------------------------------------------------------------------------------------

    def schedule(
        self,
        name: str,
        payload: Payload,
        **options: Unpack[ScheduleOptions],
    ) -> Steps[int]:
        """DQ.SCHEDULE, in the queue of the message's group, or without a group in that of the schedule's name.
        Returns the first time, in Unix ms.
        """
        home = self._homes(options.get("group"), name)[0]
        return (yield from step(home.schedule(name, payload, **options)))

    def unschedule(self, name: str, *, group: str | None = None) -> Steps[bool]:
        """DQ.UNSCHEDULE: removes a schedule. Returns whether it existed."""
        existed = False
        for queue in self._homes(group, name):
            existed |= yield from step(queue.unschedule(name))
        return existed

    def pause_schedule(self, name: str, *, group: str | None = None) -> Steps[bool]:
        """DQ.SCHEDULES PAUSE: stops a schedule until it is resumed. Returns whether it exists."""
        exists = False
        for queue in self._homes(group, name):
            exists |= yield from step(queue.pause_schedule(name))
        return exists

    def resume_schedule(self, name: str, *, group: str | None = None) -> Steps[bool]:
        """DQ.SCHEDULES RESUME: lets a schedule go on. The fires that it has missed are skipped. Returns whether it
        exists.
        """
        exists = False
        for queue in self._homes(group, name):
            exists |= yield from step(queue.resume_schedule(name))
        return exists

    def schedules(self) -> Steps[builtins.list[records.Schedule]]:
        """DQ.SCHEDULES: returns the schedules of all queues."""
        found: builtins.list[records.Schedule] = []
        for queue in self._queues():
            found += yield from step(queue.schedules())
        return found
