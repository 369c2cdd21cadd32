/** Traces and metrics, with the exporters of OpenTelemetry's SDK. */

import assert from 'node:assert/strict';
import test from 'node:test';

import { context, propagation, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { Park, Queue, Secrets, Worker } from 'dq-queue';
import { Tracing, traceHeaders } from 'dq-queue/opentelemetry';
import { close, LIBRARIES, newName, until, url, working } from './setup.mjs';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

test('a send and its attempts are in traces and metrics', async () => {
  const spans = new InMemorySpanExporter();
  const figures = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: figures })] });
  const tracing = new Tracing({ tracers: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }), meters });
  const client = await LIBRARIES['ioredis, RESP3'](url);
  const name = newName();
  const queue = new Queue(client, name, { middleware: [tracing, new Secrets({ k: Buffer.alloc(32, 1) })] });
  await queue.ensure({ retries: 3, backoff: ['FIXED', 1] });
  try {
    const id = await queue.send('hello', { type: 'mail', group: 'ann', headers: { own: 'x' } });
    const seen = [];
    const worker = new Worker(queue, ({ text, headers }) => {
      seen.push([text, headers.own, traceHeaders().traceparent]);
      if (seen.length === 1) throw new TypeError('not yet');
      // A parked message comes again with the same attempt, so the attempt does not tell the third call.
      if (seen.length === 2) throw new Park('', { for: 1 });
    }, { block: 50 });
    await working(worker, () => until(() => seen.length === 3));
    const [send, first, ...later] = spans.getFinishedSpans();
    const about = (operation) => ({
      'messaging.system': 'dq', 'messaging.destination.name': name, 'messaging.operation.name': operation, 'messaging.operation.type': operation,
      'messaging.message.id': id, 'dq.type': 'mail', 'dq.group': 'ann',
    });
    assert.deepEqual([send.name, send.kind, send.attributes], [`send ${name}`, SpanKind.PRODUCER, about('send')]);
    assert.deepEqual([first.name, first.kind], [`process ${name}`, SpanKind.CONSUMER]);
    assert.deepEqual(first.attributes, { ...about('process'), 'dq.attempt': 1, 'error.type': 'TypeError' });
    assert.deepEqual([first.status.code, first.events[0].attributes['exception.message']], [SpanStatusCode.ERROR, 'not yet']);
    const { traceId, spanId } = send.spanContext();
    assert.deepEqual([first.parentSpanContext.spanId, first.spanContext().traceId, first.links.length], [spanId, traceId, 0]);
    for (const one of later) {
      assert.deepEqual([one.parentSpanContext, one.links[0].context.spanId, one.status.code], [undefined, spanId, SpanStatusCode.UNSET]);
      assert.notEqual(one.spanContext().traceId, traceId);
    }
    assert.deepEqual(seen.map(([text, header]) => [text, header]), Array(3).fill(['hello', 'x']));
    assert.ok(seen[0][2].includes(first.spanContext().spanId));

    await queue.client.disconnect();
    await assert.rejects(new Queue(client, name, { middleware: [tracing], patience: 0 }).send('lost'));
    await meters.forceFlush();
    const all = Object.fromEntries(figures.getMetrics().at(-1).scopeMetrics[0].metrics.map((one) => [one.descriptor.name, one.dataPoints]));
    const of = (figure) => all[figure].map(({ attributes, value }) => [attributes['error.type'], value.count ?? value]);
    assert.deepEqual(of('messaging.client.sent.messages'), [[undefined, 1], ['ConnectionError', 1]]);
    assert.deepEqual(of('messaging.client.operation.duration'), [[undefined, 1], ['ConnectionError', 1]]);
    assert.deepEqual(of('messaging.client.consumed.messages'), [[undefined, 3]]);
    assert.deepEqual(of('messaging.process.duration'), [['TypeError', 1], [undefined, 2]]);
    assert.equal(all['messaging.process.duration'][0].attributes['messaging.operation.name'], 'process');
  } finally {
    queue.close();
    await meters.shutdown();
    await close(client);
  }
});
