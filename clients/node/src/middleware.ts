/** The code that runs around each send and around each handler: encryption, compression, traces, logs. */

import type { Context } from './handling.js';
import type { Message } from './message.js';
import type { Payload, SendOneOptions } from './words.js';

/** A message that is about to be sent. A middleware may change its payload and its options. */
export interface Sending {
  /** The key of the queue. */
  readonly queue: string;
  readonly id: string;
  payload: Payload;
  options: SendOneOptions;
}

/** Both methods call `next` once, and return what it returns. The first middleware of a queue is the outermost one. */
export interface Middleware {
  send?(sending: Sending, next: () => Promise<string | null>): Promise<string | null>;
  /** An error that `next` throws is the failure of the message, also Retry, Reject, Snooze and Park. */
  handle?(message: Message, context: Context, next: () => unknown): unknown;
}

export function throughSend(all: readonly Middleware[], sending: Sending, send: () => Promise<string | null>): Promise<string | null> {
  const [first, ...rest] = all;
  const next = () => throughSend(rest, sending, send);
  return first ? (first.send?.(sending, next) ?? next()) : send();
}

export function throughHandle(all: readonly Middleware[], message: Message, context: Context, handle: () => unknown): unknown {
  const [first, ...rest] = all;
  if (!first) return handle();
  const next = () => throughHandle(rest, message, context, handle);
  return first.handle ? first.handle(message, context, next) : next();
}

/** Headers of a message. */
export type Fields = Readonly<Record<string, string | number>>;
type Coded = [Buffer, Record<string, string>];

/** A middleware that writes payloads and headers in another form: encrypted, compressed, kept elsewhere. */
export abstract class Coding implements Middleware {
  /** The codings of which this one consists. */
  get parts(): readonly Coding[] {
    return [this];
  }

  /** Returns the payload and the headers of a message of this queue and id as they are sent. */
  abstract seal(queue: string, id: string, payload: Payload, headers?: Fields): Coded | Promise<Coded>;

  /** Returns the payload and the headers as they were. Throws Reject for a message that can never be read. */
  abstract open(queue: string, id: string, payload: Buffer, headers: Fields): Coded | Promise<Coded>;

  async send(sending: Sending, next: () => Promise<string | null>): Promise<string | null> {
    const { queue, id, options } = sending;
    const [payload, headers] = await this.seal(queue, id, sending.payload, options.headers ?? {});
    sending.payload = payload;
    sending.options = { ...options, headers };
    return next();
  }

  async handle(message: Message, _context: Context, next: () => unknown): Promise<unknown> {
    message.replace(...(await this.open(message.queue, message.id, message.payload, message.headers)));
    return next();
  }
}

/** Returns headers as texts. */
export function texts(fields: Fields): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
}

/** Returns a payload as bytes. */
export const bytesOf = (payload: Payload): Buffer => (typeof payload === 'string' ? Buffer.from(payload) : Buffer.from(payload));

/** Several codings: what is sent goes through the first one first, and what comes through the last one first. */
export class Layers extends Coding {
  readonly #codings: readonly Coding[];

  constructor(...codings: Coding[]) {
    super();
    this.#codings = codings;
  }

  override get parts(): readonly Coding[] {
    return this.#codings.flatMap((one) => one.parts);
  }

  async seal(queue: string, id: string, payload: Payload, headers: Fields = {}): Promise<Coded> {
    let sealed: Coded = [bytesOf(payload), texts(headers)];
    for (const one of this.#codings) sealed = await one.seal(queue, id, ...sealed);
    return sealed;
  }

  async open(queue: string, id: string, payload: Buffer, headers: Fields): Promise<Coded> {
    let opened: Coded = [payload, texts(headers)];
    for (const one of [...this.#codings].reverse()) opened = await one.open(queue, id, ...opened);
    return opened;
  }
}
