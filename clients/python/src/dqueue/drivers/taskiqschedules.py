"""The schedules of taskiq, which the server fires."""

from datetime import UTC, datetime, timedelta
from typing import Any

from taskiq import ScheduledTask, ScheduleSource
from taskiq.exceptions import ScheduledTaskCancelledError
from taskiq.message import TaskiqMessage

from dqueue.drivers.taskiq import DqBroker
from dqueue.protocol.options import Word, words


class DqScheduleSource(ScheduleSource):
    """Schedules that the server fires itself, in the millisecond in which they are due.

    No scheduler process is needed. If one has this source, it sends nothing. `get_schedules` lists what was added, from
    the hash `<queue_name>:schedules`.

    `missed` and `overlap` are options of DQ.SCHEDULE.
    """

    def __init__(self, broker: DqBroker, *, missed: str | None = None, overlap: str | None = None) -> None:
        self.broker = broker
        self.missed = missed
        self.overlap = overlap
        self.key = f"{broker.queue_name}:schedules"

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Adds a schedule, or replaces the one of this id."""
        message = self.broker.formatter.dumps(
            TaskiqMessage(
                task_id=schedule.task_id or self.broker.id_generator(),
                task_name=schedule.task_name,
                labels={**schedule.labels, "schedule_id": schedule.schedule_id},
                args=schedule.args,
                kwargs=schedule.kwargs,
            )
        )
        # The time is that of the schedule.
        message.labels = {name: value for name, value in message.labels.items() if name != "delay"}
        key, payload, *options = self.broker.sending(message)
        if schedule.time is not None:
            command: list[Word] = ["DQ.SEND", key, payload, *options, "ID", schedule.schedule_id, "REPLACE"]
            command += ["AT", _millis(schedule.time)]
        else:
            if schedule.cron is not None:
                timing: dict[str, Any] = {"cron": schedule.cron, "tz": _zone(schedule.cron_offset)}
            else:
                timing = {"every": _interval(schedule.interval)}
            timing |= {"missed": self.missed, "overlap": self.overlap}
            command = ["DQ.SCHEDULE", key, schedule.schedule_id, *words(timing), "PAYLOAD", payload, *options]
        async with self.broker.client.pipeline(transaction=True) as pipe:
            pipe.execute_command(*command)
            pipe.hset(self.key, schedule.schedule_id, schedule.model_dump_json())
            await pipe.execute()

    async def delete_schedule(self, schedule_id: str) -> None:
        """Removes a schedule. The messages that it has sent before stay."""
        for schedule in await self.get_schedules():
            if schedule.schedule_id == schedule_id:
                key = schedule.labels.get("queue_name") or self.broker.queue_name
                verb = "DQ.UNSCHEDULE" if schedule.time is None else "DQ.CANCEL"
                async with self.broker.client.pipeline(transaction=True) as pipe:
                    pipe.execute_command(verb, key, schedule_id)
                    pipe.hdel(self.key, schedule_id)
                    await pipe.execute()

    async def get_schedules(self) -> list[ScheduledTask]:
        """Returns the schedules that can still fire."""
        stored = await self.broker.client.hgetall(self.key)
        schedules = [ScheduledTask.model_validate_json(one) for one in stored.values()]
        over = [one.schedule_id for one in schedules if one.time is not None and _aware(one.time) < datetime.now(UTC)]
        if over:
            await self.broker.client.hdel(self.key, *over)
        return [one for one in schedules if one.schedule_id not in over]

    def pre_send(self, task: ScheduledTask) -> None:
        """Keeps a scheduler process from sending a message that the server itself sends."""
        raise ScheduledTaskCancelledError


def _aware(moment: datetime) -> datetime:
    """A time without a zone is in UTC, as in taskiq."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _millis(moment: datetime) -> int:
    return max(0, round(_aware(moment).timestamp() * 1000))


def _interval(interval: int | timedelta | None) -> int:
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval or 0
    return round(seconds * 1000)


def _zone(offset: str | timedelta | None) -> str | None:
    """Returns the time zone of a cron rule for the server, which knows those of IANA."""
    if offset is None or isinstance(offset, str):
        return offset
    hours, rest = divmod(offset, timedelta(hours=1))
    if rest:
        raise ValueError(f"the offset {offset} of a cron rule is not in whole hours: use the name of a time zone")
    # Etc/GMT-2 is two hours east of Greenwich.
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
