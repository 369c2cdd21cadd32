"""Logging in which each line names the message that is being handled: as text, or as one JSON object a line."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from dqueue.protocol.message import Message, about
from dqueue.working.middleware import Middleware, current_message

log = logging.getLogger("dqueue")

FIELDS = ("queue", "message_id", "message_type", "group", "attempt", "duration_ms")
"""The attributes that a record of the log may have beside the usual ones."""


class MessageFilter(logging.Filter):
    """Adds the message that is being handled to each record, for any handler and formatter: `FIELDS` but the duration.

    The names are those of `dqueue.protocol.message.about`.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        message = current_message()
        if message is not None:
            for name, value in about(message).items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, text, and those of `FIELDS` that apply."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
        }
        for name in FIELDS:
            if getattr(record, name, None) is not None:
                line[name] = getattr(record, name)
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class LogTasks(Middleware):
    """Writes a line when a handler begins (debug) and when it has returned (info), with the time that it took."""

    @contextmanager
    def handle(self, message: Message) -> Iterator[None]:
        name = message.type or "message"
        began = time.monotonic()
        log.debug("%s %s begins", name, message.id, extra=about(message))
        yield
        duration = round((time.monotonic() - began) * 1000, 1)
        log.info(
            "%s %s is done in %s ms", name, message.id, duration, extra={**about(message), "duration_ms": duration}
        )


def configure(level: str = "INFO", format: Literal["text", "json"] = "text") -> None:
    """Sets up the root logger: lines to standard error, in one of the two formats."""
    handler = logging.StreamHandler()
    handler.addFilter(MessageFilter())
    if format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
