"""The verbs for pauses, settings of groups, limits and schedules. They are a part of `QueueVerbs`."""

from __future__ import annotations

import builtins
from typing import Unpack

from dqueue.protocol import calls, records
from dqueue.protocol.calls import Call, Payload
from dqueue.protocol.options import GroupOptions, LimitOptions, Millis, ScheduleOptions


class ControlVerbs:
    """The verbs of one queue that change no message."""

    key: str

    def pause(self, *, group: str | None = None, for_: Millis | None = None) -> Call[None]:
        """DQ.PAUSE: stops deliveries of the queue or of a group, for this long or until `resume`."""
        return calls.pause(self.key, {"group": group, "for_": for_})

    def resume(self, *, group: str | None = None) -> Call[None]:
        """DQ.RESUME: ends a pause, or the hold of a group."""
        return calls.resume(self.key, group)

    def set_group(self, group: str, **options: Unpack[GroupOptions]) -> Call[None]:
        """DQ.GROUPSET: changes settings of a group. Concurrency 0 and rate 0 restore those of the queue."""
        return calls.set_group(self.key, group, options)

    def limit(self, name: str, **options: Unpack[LimitOptions]) -> Call[None]:
        """DQ.LIMIT: limits the messages that name it in `limits`. Without an option the limit is removed.

        `rates`: up to four times how much may begin in any window of this length. `concurrency`: how many may be leased,
        or with `weight` their costs. A name with `*` is a pattern, and each name that it matches is limited by itself.
        """
        return calls.limit(self.key, name, options)

    # ---- schedules --------------------------------------------------------------------------------------------------

    def schedule(
        self,
        name: str,
        payload: Payload,
        **options: Unpack[ScheduleOptions],
    ) -> Call[int]:
        """DQ.SCHEDULE: makes the server send the payload at these times. Returns the first of them, in Unix ms."""
        return calls.schedule(self.key, name, payload, options)

    def unschedule(self, name: str) -> Call[bool]:
        """DQ.UNSCHEDULE: removes a schedule. Returns whether it existed."""
        return calls.unschedule(self.key, name)

    def pause_schedule(self, name: str) -> Call[bool]:
        """DQ.SCHEDULES PAUSE: stops a schedule until it is resumed. Returns whether it exists."""
        return calls.pause_schedule(self.key, name, "PAUSE")

    def resume_schedule(self, name: str) -> Call[bool]:
        """DQ.SCHEDULES RESUME: lets a schedule go on. The fires that it has missed are skipped. Returns whether it
        exists.
        """
        return calls.pause_schedule(self.key, name, "RESUME")

    def schedules(self) -> Call[builtins.list[records.Schedule]]:
        """DQ.SCHEDULES: returns all schedules."""
        return calls.schedules(self.key)
