"""Tracing: one trace from the send to the handler."""

import asyncio

import pytest
from dqueue import Reject, Snooze, Tasks
from dqueue import asyncio as aq
from dqueue.testing import ManualQueue

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from dqueue.opentelemetry import Tracing, trace_headers  # noqa: E402
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import SpanKind, StatusCode  # noqa: E402


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def q(dq_client):
    return ManualQueue(dq_client, "jobs", retain=1000)


def test_the_handler_is_a_child_of_the_send(q, provider, exporter):
    tasks = Tasks(q, middleware=[Tracing(provider)])
    inside = []

    @tasks.task
    def mail():
        inside.append(trace_headers())

    job = mail.with_options(group="ann", headers={"own": "1"}).send()
    q.work(tasks)
    send, process = exporter.get_finished_spans()
    assert (send.name, send.kind) == ("send jobs", SpanKind.PRODUCER)
    assert (process.name, process.kind) == ("process jobs", SpanKind.CONSUMER)
    assert process.parent.span_id == send.context.span_id
    assert process.context.trace_id == send.context.trace_id
    assert dict(process.attributes) == {
        "messaging.system": "dq",
        "messaging.destination.name": "jobs",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": job.id,
        "dq.type": "mail",
        "dq.attempt": 1,
        "dq.group": "ann",
    }
    headers = q.get(job.id).headers
    assert headers["own"] == b"1" and format(send.context.trace_id, "032x") in headers["traceparent"].decode()
    assert format(process.context.span_id, "016x") in inside[0]["traceparent"]
    assert process.status.status_code == StatusCode.UNSET


def test_a_failure_is_an_error_of_the_span_and_a_snooze_is_none(q, provider, exporter):
    tasks = Tasks(q, middleware=[Tracing(provider)])

    @tasks.task
    def fail():
        raise Reject("never")

    @tasks.task
    def wait():
        raise Snooze("busy", delay=1000)

    fail.send()
    wait.send()
    q.work(tasks)
    by_type = {span.attributes["dq.type"]: span for span in exporter.get_finished_spans() if span.name.startswith("pr")}
    assert by_type["fail"].status.status_code == StatusCode.ERROR
    assert by_type["fail"].events[0].attributes["exception.message"] == "never"
    assert by_type["wait"].status.status_code == StatusCode.UNSET and not by_type["wait"].events


def test_a_later_attempt_is_linked_to_the_send_and_metrics_count_all(q, provider, exporter):
    reader = InMemoryMetricReader()
    tasks = Tasks(q, middleware=[Tracing(provider, MeterProvider([reader]))], retries=1, backoff=("FIXED", 1))

    @tasks.task
    def mail():
        raise KeyError("no")

    mail.send()
    q.work(tasks)
    q.tick(advance=1000)
    q.work(tasks)
    send, first, second = exporter.get_finished_spans()
    assert first.parent.span_id == send.context.span_id and not first.links
    assert second.parent is None and second.links[0].context.span_id == send.context.span_id and second.context.trace_id != send.context.trace_id
    [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    counts = {one.name: [(point.attributes.get("error.type"), getattr(point, "count", None) or point.value) for point in one.data.data_points] for one in scope.metrics}
    assert counts == {
        "messaging.client.sent.messages": [(None, 1)],
        "messaging.client.operation.duration": [(None, 1)],
        "messaging.client.consumed.messages": [(None, 2)],
        "messaging.process.duration": [("KeyError", 2)],
    }


def test_a_message_without_headers_begins_a_trace(q, provider, exporter):
    tasks = Tasks(q, middleware=[Tracing(provider)])
    tasks.handler()(lambda message: None)
    q.send("x")
    q.work(tasks)
    (span,) = exporter.get_finished_spans()
    assert span.parent is None


def test_asyncio_tasks_are_traced_alike(dq_url, q, provider, exporter):
    tasks = aq.Tasks(aq.Queue(aq.connect(dq_url), "jobs"), middleware=[Tracing(provider)])

    @tasks.task
    async def mail():
        await asyncio.sleep(0)

    async def main():
        await mail.send()
        await tasks.queue.client.aclose()

    asyncio.run(main())
    q.work(tasks)
    send, process = exporter.get_finished_spans()
    assert process.parent.span_id == send.context.span_id
