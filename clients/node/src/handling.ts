/** The messages that a worker is handling: their handlers, their leases, and what becomes of them. */

import { Reject, Retry, Snooze } from './errors.js';
import type { Message } from './message.js';
import { type NackOptions, receipts } from './queue.js';
import { byQueue, type Settling } from './settling.js';
import { call, type Server } from './connection.js';
import { options, type Payload } from './words.js';

/** What a handler is given beside the message. */
export interface Context {
  /** Aborted when the lease is lost, the time limit is over, or the worker stops and `grace` is over. */
  readonly signal: AbortSignal;
  /** Keeps a text with the message for its next attempt, and renews its lease. Returns whether the lease was on. */
  note(text: string): Promise<boolean>;
}

/** What a worker tells of its messages. */
export interface Reports {
  done(message: Message, result: unknown): void;
  failed(message: Message, error: unknown): void;
  lost(message: Message): void;
  warning(error: Error): void;
}

/** Times of a worker in ms, and how many messages it handles at a time. */
export interface Timing {
  readonly concurrency: number;
  readonly lease: number;
  readonly timeLimit: number | undefined;
}

/** A message that is being handled, and the context of its handler. */
class Running implements Context {
  readonly since = performance.now();
  #abort: AbortController | undefined;
  #reason: Error | undefined;

  constructor(
    readonly message: Message,
    private readonly keep: (text: string) => Promise<boolean>,
  ) {}

  /** Made when it is asked for, because making it costs more than the rest of a short handler. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#reason) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** Bound, so that a handler may take it out of the context. */
  readonly note = (text: string): Promise<boolean> => this.keep(text);

  /** Whether the message is no longer this worker's. */
  get aborted(): boolean {
    return this.#reason !== undefined;
  }

  abort(reason: string): void {
    this.#reason ??= new Error(reason);
    this.#abort?.abort(this.#reason);
  }
}

/** The longest text of an error that is kept with a message. */
const ERROR_LENGTH = 1000;

export class Handling {
  readonly #running = new Map<Message, Running>();
  readonly #line: (() => void)[] = [];
  #reserved = 0;
  #closed = false;

  constructor(
    private readonly server: Server,
    private readonly timing: Timing,
    private readonly handle: (message: Message, context: Context) => unknown,
    private readonly settling: Settling,
    private readonly reports: Reports,
  ) {}

  get running(): number {
    return this.#running.size;
  }

  /** How many more messages can be handled now. */
  get room(): number {
    return this.#closed ? 0 : Math.max(0, this.timing.concurrency - this.#running.size - this.#reserved);
  }

  /** Returns when there is room, first come, first served, or when the worker stops. */
  async waitForRoom(): Promise<void> {
    while (this.room === 0 && !this.#closed) await new Promise<void>((resolve) => this.#line.push(resolve));
  }

  /** Keeps room for messages that are being fetched. Returns the function that gives it back. */
  reserve(count: number): () => void {
    this.#reserved += count;
    return () => {
      this.#reserved -= count;
      this.#wake();
    };
  }

  /** Handles messages. The worker must have room for them. */
  start(messages: readonly Message[]): void {
    for (const message of messages) void this.#run(message);
    this.#wake();
  }

  /** Ends `waitForRoom`: the worker takes no more messages. */
  close(): void {
    this.#closed = true;
    for (const resolve of this.#line.splice(0)) resolve();
  }

  /** Returns when no handler runs, or after `grace` ms. */
  async finish(grace: number): Promise<void> {
    if (!this.#running.size) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, grace);
      this.#ended = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #ended: () => void = () => {};

  /** Ends the handling of all messages, whose handlers are told. Returns them. */
  abandon(): Message[] {
    const left = [...this.#running.values()];
    this.#running.clear();
    for (const one of left) one.abort('the worker stops');
    return left.map(({ message }) => message);
  }

  /** Renews the leases of all running messages. */
  async beat(): Promise<void> {
    const now = performance.now();
    const due: Running[] = [];
    for (const one of this.#running.values()) {
      if (one.aborted) continue;
      if (now - one.since < (this.timing.timeLimit ?? Infinity)) due.push(one);
      else one.abort('the time limit is over');
    }
    await Promise.all(byQueue(due, ({ message }) => message).map(([queue, all]) => this.#touch(queue, all)));
  }

  async #touch(queue: string, all: Running[]): Promise<void> {
    try {
      if ((await this.#renew(queue, all)) === all.length) return;
      for (const one of all) {
        // A message that was finished in the meantime has no lease, either.
        if ((await this.#renew(queue, [one])) === 0 && this.#running.has(one.message)) {
          one.abort('the lease is lost');
          this.reports.lost(one.message);
        }
      }
    } catch (error) {
      this.reports.warning(error as Error);
    }
  }

  async #renew(queue: string, all: Running[], note?: string): Promise<number> {
    const words = [String(this.timing.lease), ...receipts(all.map(({ message }) => message)), ...options({ note })];
    return Number(await call(this.server, ['DQ.TOUCH', queue, ...words], queue));
  }

  async #run(message: Message): Promise<void> {
    const running: Running = new Running(message, async (text) => (await this.#renew(message.queue, [running], text)) === 1);
    this.#running.set(message, running);
    try {
      const result = await this.handle(message, running);
      if (this.#over(running)) return;
      this.reports.done(message, result);
      this.settling.done({ message, result: asResult(result) });
    } catch (error) {
      if (this.#over(running)) return;
      this.reports.failed(message, error);
      await this.settling.insist('NACK', message.queue, [...receipts(message), ...options(verdict(error))]);
    } finally {
      this.#running.delete(message);
      this.#wake();
      if (!this.#running.size) this.#ended();
    }
  }

  /** Whether another consumer may have the message by now, so that its outcome does not count. */
  #over({ message, aborted }: Running): boolean {
    return aborted || !this.#running.has(message);
  }

  /** All in line look for themselves: the first may wait at the server without keeping the room. */
  #wake(): void {
    if (this.room > 0) for (const resolve of this.#line.splice(0)) resolve();
  }
}

/** Returns what a handler has returned as the result of its message. An empty text is none. */
function asResult(result: unknown): Payload | undefined {
  if (result === undefined || result === '') return undefined;
  return typeof result === 'string' || result instanceof Uint8Array ? result : JSON.stringify(result);
}

/** Returns the options of the NACK for what a handler has thrown. */
function verdict(error: unknown): NackOptions {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Snooze) {
    const { delay, pauseGroup, pauseQueue } = error;
    const pause = pauseGroup ? (['GROUP', pauseGroup] as const) : pauseQueue ? (['QUEUE', pauseQueue] as const) : undefined;
    return { silent: true, delay, pause, error: shortened(message) };
  }
  if (error instanceof Retry) return { delay: error.delay, error: shortened(message) };
  if (error instanceof Reject) return { fatal: true, error: shortened(message) };
  return { error: shortened(error instanceof Error ? `${error.name}: ${message}` : message) };
}

function shortened(message: string): string | undefined {
  return message.slice(0, ERROR_LENGTH) || undefined;
}
