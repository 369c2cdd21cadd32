"""Traces and metrics by OpenTelemetry, from the send of a task to its handlers, through the headers of the message.

    from dqueue.opentelemetry import Tracing

    tasks = Tasks(queue, middleware=[Tracing()])

It needs the extra `opentelemetry`. Spans and metrics are those of the semantic conventions for messaging: `send mails` (kind
producer) around a send, and `process mails` (kind consumer) around a handler. The first attempt is a child of the send, and
later ones begin traces of their own that are linked to it. The header is `traceparent` (W3C), unless other propagators are set.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
)

from dqueue.protocol.message import Message
from dqueue.working.middleware import Middleware, Sending
from dqueue.working.outcomes import Park, Snooze


class Tracing(Middleware):
    """A middleware for `Tasks`, `Worker` and both of them for asyncio. The providers are those of the process by default."""

    def __init__(self, provider: TracerProvider | None = None, meters: MeterProvider | None = None) -> None:
        self._tracer = trace.get_tracer("dqueue", tracer_provider=provider)
        meter = metrics.get_meter("dqueue", meter_provider=meters)
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}")
        self._sending = meter.create_histogram("messaging.client.operation.duration", "s")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}")
        self._processing = meter.create_histogram("messaging.process.duration", "s")

    @contextmanager
    def send(self, sending: Sending) -> Iterator[None]:
        about = _attributes("send", sending.queue)
        more = {"messaging.message.id": sending.id, "dq.type": sending.type, "dq.group": sending.options.get("group")}
        span = self._tracer.start_span(f"send {sending.queue}", kind=SpanKind.PRODUCER, attributes=about | _given(more))

        def measured(seconds: float, error: dict[str, str]) -> None:
            self._sent.add(1, about | error)
            self._sending.record(seconds, about | error)

        with trace.use_span(span, record_exception=False, set_status_on_exception=False), _around(span, measured):
            sending.add_headers(trace_headers())
            yield

    @contextmanager
    def handle(self, message: Message) -> Iterator[None]:
        about = _attributes("process", message.queue)
        more = {"messaging.message.id": message.id, "dq.attempt": message.attempt, "dq.type": message.type, "dq.group": message.group}
        parent = propagate.extract({name: value.decode(errors="replace") for name, value in message.headers.items()})
        sender = trace.get_current_span(parent).get_span_context()
        links = []
        if message.attempt > 1:
            # Baggage and the like come with every attempt.
            parent = trace.set_span_in_context(INVALID_SPAN, parent)
            links = [Link(sender)] if sender.is_valid else []
        name, attributes = f"process {message.queue}", about | _given(more)
        span = self._tracer.start_span(name, parent, SpanKind.CONSUMER, attributes, links)

        def measured(seconds: float, error: dict[str, str]) -> None:
            self._consumed.add(1, about)
            self._processing.record(seconds, about | error)

        with trace.use_span(span, record_exception=False, set_status_on_exception=False), _around(span, measured):
            yield


@contextmanager
def _around(span: Span, measured: Callable[[float, dict[str, str]], None]) -> Iterator[None]:
    """Ends the span. A message that is given back without blame has not failed."""
    began, error = time.monotonic(), {}
    try:
        yield
    except (Snooze, Park):
        raise
    except BaseException as thrown:
        error = {"error.type": type(thrown).__qualname__}
        span.record_exception(thrown)
        span.set_status(Status(StatusCode.ERROR, f"{type(thrown).__name__}: {thrown}"))
        span.set_attributes(error)
        raise
    finally:
        measured(time.monotonic() - began, error)
        span.end()


def trace_headers() -> dict[str, str]:
    """Returns the headers that carry the current span: for sends without `Tasks`, `queue.send(..., headers=...)`."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


def _attributes(operation: str, queue: str) -> dict[str, Any]:
    return {
        "messaging.system": "dq",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _given(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
