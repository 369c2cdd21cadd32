"""Traces by OpenTelemetry: one from the send of a task to its handler, through the headers of the message.

    from dqueue.opentelemetry import Tracing

    tasks = Tasks(queue, middleware=[Tracing()])

It needs the extra `opentelemetry`. The spans are those of the semantic conventions for messaging: `send mails` (kind
producer) around a send, and `process mails` (kind consumer) around a handler, which is its child. The header is
`traceparent` (W3C), unless other propagators are set.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from dqueue.protocol.message import Message
from dqueue.working.middleware import Middleware, Sending
from dqueue.working.outcomes import Park, Snooze


class Tracing(Middleware):
    """A middleware for `Tasks`, `Worker` and both of them for asyncio. `provider` is the global one by default."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("dqueue", tracer_provider=provider)

    @contextmanager
    def send(self, sending: Sending) -> Iterator[None]:
        attributes = _attributes(sending.queue, "send", sending.type)
        with self._tracer.start_as_current_span(f"send {sending.queue}", kind=SpanKind.PRODUCER, attributes=attributes):
            sending.add_headers(trace_headers())
            yield

    @contextmanager
    def handle(self, message: Message) -> Iterator[None]:
        attributes = _attributes(message.queue, "process", message.type)
        attributes |= {"messaging.message.id": message.id, "dq.attempt": message.attempt}
        if message.group is not None:
            attributes["dq.group"] = message.group
        carrier = {name: value.decode(errors="replace") for name, value in message.headers.items()}
        with self._tracer.start_as_current_span(
            f"process {message.queue}",
            context=propagate.extract(carrier),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except (Snooze, Park):
                # Given back without blame.
                raise
            except BaseException as error:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
                raise


def trace_headers() -> dict[str, str]:
    """Returns the headers that carry the current span: for sends without `Tasks`, `queue.send(..., headers=...)`."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


def _attributes(queue: str, operation: str, type: str | None) -> dict[str, Any]:
    attributes = {
        "messaging.system": "dq",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    return attributes if type is None else {**attributes, "dq.type": type}
