/** A delivered message. */

import { Effects } from './effects.js';
import type { After, ChildCounts } from './records.js';
import { bytes, maybeText, shaped, text } from './replies.js';

interface Meta {
  group: string | null;
  score: number | null;
  priority: number;
  type: string | null;
  headers: Record<string, string> | null;
  sentAt: number;
  dueAt: number;
  leaseUntil: number | null;
  retriesLeft: number;
  note?: string | null;
  signal?: string | null;
  batch?: string | null;
  after?: After | null;
  children?: ChildCounts | null;
}

/**
 * One delivery of a message. `T` is the type of its JSON payload.
 *
 * `receipt` grows with every delivery of the queue, so it is a fencing token. Let the store that you write to refuse a
 * write whose receipt is lower than one that it has seen (`UPDATE ... WHERE fence < :receipt`). Then a worker that was
 * frozen for longer than its lease cannot overwrite what the next one did.
 */
export class Message<T = unknown> {
  /** The name of its queue. */
  readonly queue: string;
  readonly id: string;
  readonly receipt: number;
  /** Counts from 1. */
  readonly attempt: number;
  payload: Buffer;
  readonly #reply: unknown;
  #shaped: Meta | undefined;
  #data: { value: T } | undefined;
  #effects: Effects | undefined;

  /** Reads one element of the reply to FETCH ... WITHMETA. */
  constructor(queue: string, reply: unknown) {
    const [id, receipt, attempt, payload, meta] = reply as [unknown, unknown, unknown, unknown, unknown];
    this.queue = queue;
    this.id = text(id);
    this.receipt = Number(receipt);
    this.attempt = Number(attempt);
    this.payload = bytes(payload);
    this.#reply = meta;
  }

  /** Gives the message another payload and other headers, as they were before they were encrypted. */
  replace(payload: Buffer, headers: Record<string, string>): void {
    this.payload = payload;
    this.#shaped = { ...this.#meta, headers };
    this.#data = undefined;
  }

  /** The metadata is only read when it is used: many handlers need only the payload. */
  get #meta(): Meta {
    return (this.#shaped ??= shaped<Meta>(this.#reply));
  }

  /** The payload as UTF-8 text. */
  get text(): string {
    return this.payload.toString();
  }

  /** The payload parsed as JSON. Throws SyntaxError if it is none. */
  get data(): T {
    this.#data ??= { value: JSON.parse(this.text) as T };
    return this.#data.value;
  }

  get type(): string | null {
    return this.#meta.type;
  }

  get group(): string | null {
    return this.#meta.group;
  }

  get score(): number | null {
    return this.#meta.score;
  }

  get priority(): number {
    return this.#meta.priority;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#meta.headers ?? {};
  }

  /** Unix ms. */
  get sentAt(): number {
    return this.#meta.sentAt;
  }

  /** Unix ms. */
  get dueAt(): number {
    return this.#meta.dueAt;
  }

  /** Unix ms by the server's clock, as of the delivery. Heartbeats extend it on the server. */
  get leaseUntil(): number {
    return this.#meta.leaseUntil ?? 0;
  }

  /** -1 means without limit. */
  get retriesLeft(): number {
    return this.#meta.retriesLeft;
  }

  /** The note that an earlier attempt has left with the message. */
  get note(): string | null {
    return maybeText(this.#meta.note);
  }

  /** The text of the last signal to it. Null if none has come, also when its wait for one was over. */
  get signal(): string | null {
    return maybeText(this.#meta.signal);
  }

  /** The batch that the message is in. */
  get batch(): string | null {
    return maybeText(this.#meta.batch);
  }

  /** The batch that the message waited for, and the ends of its messages. */
  get after(): After | null {
    return this.#meta.after ?? null;
  }

  /** The children that the message waited for, and their ends. */
  get children(): ChildCounts | null {
    return this.#meta.children ?? null;
  }

  /** Changes of Redis keys that the worker does together with its ack of this message. A handler adds to them. */
  get effects(): Effects {
    return (this.#effects ??= new Effects());
  }

  /** The effects of a handler that has added some. */
  get collected(): Effects | undefined {
    return this.#effects?.isEmpty ? undefined : this.#effects;
  }
}
