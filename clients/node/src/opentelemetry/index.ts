/** Traces and metrics by OpenTelemetry, from a send to its handlers, through the headers of the message. */

import {
  type Attributes,
  context,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';

import { Park, Snooze } from '../errors.js';
import type { Context } from '../handling.js';
import type { Message } from '../message.js';
import type { Middleware, Sending } from '../middleware.js';
import { isA, messageOf, textOf } from '../thrown.js';

/** The providers. Those of the process are the default. */
export interface TracingOptions {
  tracers?: TracerProvider;
  meters?: MeterProvider;
}

/**
 * A middleware with the spans and metrics of the semantic conventions for messaging: `send mails` (kind producer) around a
 * send, and `process mails` (kind consumer) around a handler. The first attempt is a child of the send, and later ones begin
 * traces of their own that are linked to it. The header is `traceparent` (W3C), unless other propagators are set.
 */
export class Tracing implements Middleware {
  readonly #tracer;
  readonly #sent;
  readonly #sending;
  readonly #consumed;
  readonly #processing;

  constructor({ tracers = trace.getTracerProvider(), meters = metrics.getMeterProvider() }: TracingOptions = {}) {
    this.#tracer = tracers.getTracer('dq-queue');
    const meter = meters.getMeter('dq-queue');
    this.#sent = meter.createCounter('messaging.client.sent.messages', { unit: '{message}' });
    this.#sending = meter.createHistogram('messaging.client.operation.duration', { unit: 's' });
    this.#consumed = meter.createCounter('messaging.client.consumed.messages', { unit: '{message}' });
    this.#processing = meter.createHistogram('messaging.process.duration', { unit: 's' });
  }

  send(sending: Sending, next: () => Promise<string | null>): Promise<string | null> {
    const about = attributes('send', sending.queue);
    const more = { 'messaging.message.id': sending.id, ...own(sending.options.type, sending.options.group) };
    const span = this.#tracer.startSpan(`send ${sending.queue}`, { kind: SpanKind.PRODUCER, attributes: { ...about, ...more } });
    return context.with(trace.setSpan(context.active(), span), () => {
      sending.options = { ...sending.options, headers: { ...sending.options.headers, ...traceHeaders() } };
      return around(span, next, (seconds, error) => {
        this.#sent.add(1, { ...about, ...error });
        this.#sending.record(seconds, { ...about, ...error });
      });
    });
  }

  handle(message: Message, _context: Context, next: () => unknown): Promise<unknown> {
    const sender = propagation.extract(ROOT_CONTEXT, message.headers);
    const sent = trace.getSpanContext(sender);
    const isFirst = message.attempt === 1;
    const about = attributes('process', message.queue);
    const more = { 'messaging.message.id': message.id, 'dq.attempt': message.attempt, ...own(message.type, message.group) };
    const links = sent && !isFirst ? [{ context: sent }] : [];
    // Baggage and the like come with every attempt.
    const parent = isFirst ? sender : trace.deleteSpan(sender);
    const span = this.#tracer.startSpan(`process ${message.queue}`, { kind: SpanKind.CONSUMER, attributes: { ...about, ...more }, links }, parent);
    return context.with(trace.setSpan(parent, span), () =>
      around(span, next, (seconds, error) => {
        this.#consumed.add(1, about);
        this.#processing.record(seconds, { ...about, ...error });
      }),
    );
  }
}

/** Returns the headers that carry the current span: for sends that no middleware sees. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** Runs what a span is about, and ends the span. A message that is given back without blame has not failed. */
async function around<R>(span: Span, run: () => R, measured: (seconds: number, error: Attributes) => void): Promise<Awaited<R>> {
  const began = performance.now();
  let error: Attributes = {};
  try {
    return await run();
  } catch (thrown) {
    if (!isA(thrown, Snooze) && !isA(thrown, Park)) {
      const type = isA(thrown, Error) ? thrown.name : typeof thrown;
      error = { 'error.type': type };
      const message = isA(thrown, Error) ? messageOf(thrown) : textOf(thrown);
      span.recordException({ name: type, message });
      span.setStatus({ code: SpanStatusCode.ERROR, message }).setAttributes(error);
    }
    throw thrown;
  } finally {
    measured((performance.now() - began) / 1000, error);
    span.end();
  }
}

function attributes(operation: string, queue: string): Attributes {
  return {
    'messaging.system': 'dq',
    'messaging.destination.name': queue,
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
  };
}

/** Only what is given: an attribute has a value. */
function own(type: string | null | undefined, group: string | null | undefined): Attributes {
  return { ...(type == null ? {} : { 'dq.type': type }), ...(group == null ? {} : { 'dq.group': group }) };
}
