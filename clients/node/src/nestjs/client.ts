import { randomUUID } from 'node:crypto';

import { ClientProxy, type ReadPacket, type WritePacket } from '@nestjs/microservices';

import { Family } from '../family.js';
import type { Ended } from '../inspection.js';
import type { Queue } from '../queue.js';
import type { SendOneOptions } from '../words.js';
import { DqRecord } from './record.js';
import type { Reply } from './reply.js';

/** The queue of the messages, and how long a request waits for its answer. */
export interface DqClientOptions {
  source: Queue | Family;
  /** Milliseconds after which a request fails. The default is 60,000. */
  timeout?: number;
}

/** Sends events and requests of NestJS as messages. A request waits with DQ.WAIT for the result of its message. */
export class DqClient extends ClientProxy {
  readonly #source: Queue | Family;
  readonly #timeout: number;

  constructor({ source, timeout = 60_000 }: DqClientOptions) {
    super();
    this.#source = source;
    this.#timeout = timeout;
    this.initializeSerializer({});
    this.initializeDeserializer({});
  }

  /** The Redis client connects by itself. */
  async connect(): Promise<void> {}

  /** Closes the connections on which requests have waited. The Redis client is yours to close. */
  close(): void {
    this.#source.close();
  }

  /** Returns the queue or the family. */
  unwrap<T = Queue | Family>(): T {
    return this.#source as T;
  }

  protected async dispatchEvent<T = unknown>(packet: ReadPacket): Promise<T> {
    const { payload, options } = this.#message(packet);
    return (await this.#source.send(payload, options)) as T;
  }

  protected publish(packet: ReadPacket, callback: (packet: WritePacket) => void): () => void {
    const { payload, options } = this.#message(packet);
    const id = options.id ?? randomUUID();
    const queue = this.#source instanceof Family ? this.#source.queue(options.group ?? id) : this.#source;
    let open = true;
    const answer = (reply: WritePacket) => {
      if (open) callback(reply);
    };
    // Nobody waits for the message any more. It need not be done.
    const drop = () => void queue.cancel(id).catch(() => {});
    const timer = setTimeout(() => {
      answer({ err: new Error(`no answer within ${this.#timeout} ms`), isDisposed: true });
      if (open) drop();
      open = false;
    }, this.#timeout);
    const done = () => {
      clearTimeout(timer);
      open = false;
    };
    void this.#request(queue, payload, { ...options, id })
      .then(
        (ended) => this.#answer(ended, answer),
        (err: unknown) => answer({ err, isDisposed: true }),
      )
      .finally(done);
    return () => {
      if (open) drop();
      done();
    };
  }

  async #request(queue: Queue, payload: string, options: SendOneOptions): Promise<Ended | null> {
    // The record is kept for the wait, also if the message ends before the wait begins.
    await queue.send(payload, { retain: this.#timeout, ...options });
    // The timer of the request ends first, so that null means that there is no such message.
    return queue.wait(options.id!, this.#timeout + 1000);
  }

  #answer(ended: Ended | null, answer: (packet: WritePacket) => void): void {
    if (ended?.state !== 'finished') {
      const why = ended === null ? 'the message is gone' : `the message is ${ended.state}: ${ended.result ?? 'no reason is known'}`;
      return answer({ err: new Error(why), isDisposed: true });
    }
    const { err, values = [] } = JSON.parse(ended.result ?? '{}') as Reply;
    if (err !== undefined) return answer({ err, isDisposed: true });
    for (const response of values) answer({ response });
    answer({ isDisposed: true });
  }

  #message(packet: ReadPacket): { payload: string; options: SendOneOptions } {
    const { data, metadata } = this.serializer.serialize(packet) as ReadPacket & { metadata?: Record<string, string> };
    const { data: content, options } = data instanceof DqRecord ? data : { data: data as unknown, options: {} as SendOneOptions };
    const headers = metadata || options.headers ? { ...metadata, ...options.headers } : undefined;
    // Undefined data has no JSON, and is an empty payload.
    return { payload: JSON.stringify(content) ?? '', options: { ...options, headers, type: this.normalizePattern(packet.pattern as never) } };
  }
}
