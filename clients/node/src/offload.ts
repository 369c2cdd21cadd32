/** Large payloads that are kept elsewhere, such as in S3, alike in all languages. */

import { randomUUID } from 'node:crypto';
import type { RedisClient, Server } from './adapter.js';
import { call, serverOf } from './connection.js';
import { bytesOf, Coding, type Fields, texts } from './middleware.js';
import { list, shaped, text } from './replies.js';
import type { Payload } from './words.js';

/** The header with the key of a payload in the store. */
const OFFLOAD = 'dq-offload';
const WEEK = 7 * 24 * 3_600_000;
/** The payloads that are remembered after they were opened. */
const MOST_OPENED = 100;

/** Where the payloads are kept. */
export interface Store {
  get(key: string): Promise<Uint8Array | null | undefined>;
  put(key: string, payload: Buffer): Promise<unknown>;
  delete(key: string): Promise<unknown>;
}

/** The settings of Offload. */
export interface OffloadOptions {
  /** Payloads of more bytes are kept in the store. The default is 64 KiB. */
  above?: number;
  /** The keys of other queues that messages may have gone to (DEADTO). */
  queues?: readonly string[];
}

/**
 * A middleware that keeps large payloads in a store. A worker deletes what it has opened when the record is gone. The sorted set
 * `<queue>:offload` lists all, and `sweep` finds the others.
 */
export class Offload extends Coding {
  readonly #server: Server;
  /** The queues of payloads that were opened here, by their keys in the store. */
  readonly #opened = new Map<string, string>();

  constructor(private readonly store: Store, client: RedisClient, private readonly options: OffloadOptions = {}) {
    super();
    this.#server = serverOf(client);
  }

  async seal(queue: string, id: string, payload: Payload, headers: Fields = {}): Promise<[Buffer, Record<string, string>]> {
    const plain = bytesOf(payload);
    if (plain.length <= (this.options.above ?? 64 * 1024)) return [plain, texts(headers)];
    const key = `${queue}/${id}/${randomUUID()}`;
    // It is listed before it is there, so that nothing stays that no list has.
    await this.#listed(queue, 'ZADD', String(Date.now()), key);
    await this.store.put(key, plain);
    await this.#lookBack();
    return [Buffer.alloc(0), { ...texts(headers), [OFFLOAD]: key }];
  }

  async open(queue: string, id: string, payload: Buffer, headers: Fields): Promise<[Buffer, Record<string, string>]> {
    const { [OFFLOAD]: key, ...rest } = texts(headers);
    if (key === undefined) return [payload, rest];
    const kept = await this.store.get(key);
    if (kept == null) throw new RangeError(`the store has no ${JSON.stringify(key)}`);
    await this.#lookBack();
    // One that was sent to another queue is left to `sweep`.
    if (key.startsWith(`${queue}/${id}/`)) this.#opened.set(key, queue);
    return [bytesOf(kept), rest];
  }

  /**
   * Deletes the payloads whose messages and records are gone. Returns how many. Only those that were put, or found to be
   * needed, more than `after` ms ago (a week) are looked at: a message must have reached its queue within that time. `queue` is a
   * key. Run it now and then, in one program.
   */
  async sweep(queue: string, { after = WEEK }: { after?: number } = {}): Promise<number> {
    let deleted = 0;
    for (const key of list(await this.#listed(queue, 'ZRANGEBYSCORE', '0', String(Date.now() - after))).map(text)) {
      if (await this.#goes(queue, key)) deleted += 1;
      else await this.#listed(queue, 'ZADD', String(Date.now()), key);
    }
    return deleted;
  }

  /** Deletes up to two payloads that were opened here before, if their messages and records are gone by now. */
  async #lookBack(): Promise<void> {
    for (const [key, queue] of [...this.#opened].slice(0, 2)) {
      this.#opened.delete(key);
      // What fails here is left to `sweep`.
      const gone = await this.#mayGo(queue).then((may) => !may || this.#goes(queue, key)).catch(() => true);
      if (!gone && this.#opened.size < MOST_OPENED) this.#opened.set(key, queue);
    }
  }

  /** Whether a dead message cannot have taken its payload to a queue that is not known here. */
  async #mayGo(queue: string): Promise<boolean> {
    const { deadto } = shaped<{ deadto?: unknown }>(await call(this.#server, ['DQ.INFO', queue], queue));
    return !deadto || (this.options.queues ?? []).includes(text(deadto));
  }

  /** Deletes a payload, if no message and no record needs it. Returns whether it did. */
  async #goes(queue: string, key: string): Promise<boolean> {
    const id = key.slice(queue.length + 1, key.lastIndexOf('/'));
    if (await this.#isNeeded([queue, ...(this.options.queues ?? [])], id, key)) return false;
    await this.store.delete(key);
    await this.#listed(queue, 'ZREM', key);
    return true;
  }

  async #isNeeded(queues: readonly string[], id: string, key: string): Promise<boolean> {
    for (const queue of queues) {
      const reply = await call(this.#server, ['DQ.GET', queue, id], queue);
      if (reply !== null && shaped<{ headers: Record<string, string> | null }>(reply).headers?.[OFFLOAD] === key) return true;
    }
    return false;
  }

  #listed(queue: string, verb: string, ...words: string[]): Promise<unknown> {
    const key = `${queue}:offload`;
    return call(this.#server, [verb, key, ...words], key);
  }
}
