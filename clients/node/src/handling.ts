/** The messages that a worker is handling: their handlers, their leases, and their outcomes. */

import { Reject } from './errors.js';
import type { Message } from './message.js';
import { receipts } from './receipts.js';
import type { Record } from './records.js';
import { shaped } from './replies.js';
import { byQueue, type Settling } from './settling.js';
import type { Server } from './adapter.js';
import { call } from './connection.js';
import { callFor, type Caller } from './stray.js';
import { asOutcome, verdict } from './verdict.js';
import { options } from './words.js';

/** The object that a handler gets beside the message. */
export interface Context {
  /** Aborted when the lease is lost, the time limit is over, or the worker stops and `grace` is over. */
  readonly signal: AbortSignal;
  /** Keeps a text with the message for its next attempt, and renews its lease. Returns whether the lease was on. */
  note(text: string): Promise<boolean>;
  /** Sets the real cost of the message for its limits. It is acked with that, but not if a Follow is returned. */
  cost(cost: number): void;
}

/** The reports of a worker about its messages. */
export interface Reports {
  done(message: Message, result: unknown): void;
  failed(message: Message, error: unknown): void;
  lost(message: Message): void;
  warning(error: Error): void;
  /** Reports an error that escaped from a handler after its end. */
  stray(error: unknown): void;
}

/** Times of a worker in ms, how many messages it handles at a time, and how many workers one message may kill. */
export interface Limits {
  readonly concurrency: number;
  readonly lease: number;
  readonly timeLimit: number | undefined;
  readonly grace: number;
  readonly lostWorkers: number;
}

/** A message that is being handled, and the context of its handler. */
class Running implements Context {
  readonly since = performance.now();
  abortedAt = Infinity;
  call: Call | undefined;
  /** The cost that the handler has booked. */
  booked: number | undefined;
  #abort: AbortController | undefined;
  #reason: Error | undefined;

  constructor(
    readonly message: Message,
    private readonly keep: (text: string) => Promise<boolean>,
  ) {}

  /** The signal is only made when it is used, because making it costs more than the rest of a short handler. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#reason) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** The function is bound, so that a handler may take it out of the context. */
  readonly note = (text: string): Promise<boolean> => this.keep(text);

  readonly cost = (cost: number): void => {
    this.booked = cost;
  };

  /** Whether the message is no longer this worker's. */
  get aborted(): boolean {
    return this.#reason !== undefined;
  }

  abort(reason: string): void {
    if (this.aborted) return;
    this.abortedAt = performance.now();
    this.#reason = new Error(reason);
    this.#abort?.abort(this.#reason);
  }
}

/**
 * The caller to which the errors of a handler belong. Objects that the handler has left behind, such as a connection in
 * a pool, keep this object while they live, so it drops its message.
 */
class Call implements Caller {
  running: Running | undefined;

  constructor(
    running: Running,
    private readonly failed: (running: Running, error: unknown) => void,
    private readonly stray: (error: unknown) => void,
  ) {
    this.running = running;
    running.call = this;
  }

  caught(error: unknown): void {
    if (this.running && !this.running.aborted) this.failed(this.running, error);
    else this.stray(error);
  }
}

/** The messages that a worker is handling. */
export class Handling {
  readonly #running = new Map<Message, Running>();
  readonly #line: (() => void)[] = [];
  #reserved = 0;
  #closed = false;

  constructor(
    private readonly server: Server,
    private readonly limits: Limits,
    private readonly handle: (message: Message, context: Context) => unknown,
    private readonly settling: Settling,
    private readonly reports: Reports,
  ) {}

  get running(): number {
    return this.#running.size;
  }

  /** How many more messages can be handled now. */
  get room(): number {
    return this.#closed ? 0 : Math.max(0, this.limits.concurrency - this.#running.size - this.#reserved);
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

  /** Handles messages that were asked for at that time (`performance.now`). The worker must have room for them. */
  start(messages: readonly Message[], asked: number): void {
    // If a reply was lost and these are its messages, their leases may end before the next beat.
    const isLate = performance.now() - asked > this.limits.lease / 3;
    const renewed = isLate ? Promise.resolve().then(() => this.beat()) : undefined;
    for (const message of messages) void this.#run(message, renewed);
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

  /** Ends the handling of all messages, and aborts their signals. Returns them. */
  abandon(): Message[] {
    const left = [...this.#running.values()];
    this.#running.clear();
    for (const one of left) {
      one.abort('the worker stops');
      this.#leave(one);
    }
    return left.map(({ message }) => message);
  }

  /** Renews the leases of all running messages. */
  async beat(): Promise<void> {
    const now = performance.now();
    const due: Running[] = [];
    for (const one of this.#running.values()) {
      if (one.aborted) {
        // A handler that ignores its signal may never end. Its place is for others then.
        if (now - one.abortedAt >= this.limits.grace) this.#leave(one);
      } else if (now - one.since < (this.limits.timeLimit ?? Infinity)) due.push(one);
      else one.abort('the time limit is over');
    }
    await Promise.all(byQueue(due, ({ message }) => message).map(([queue, all]) => this.#touch(queue, all)));
  }

  async #touch(queue: string, all: Running[]): Promise<void> {
    try {
      if ((await this.#renew(queue, all)) === all.length) return;
      for (const one of all) {
        // A message that was finished in the meantime has no lease any more.
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
    const words = [String(this.limits.lease), ...receipts(all.map(({ message }) => message)), ...options({ note })];
    return Number(await call(this.server, ['DQ.TOUCH', queue, ...words], queue));
  }

  /** Handles a message when its lease has been renewed, if that is necessary. */
  async #run(message: Message, renewed?: Promise<void>): Promise<void> {
    const running: Running = new Running(message, async (text) => (await this.#renew(message.queue, [running], text)) === 1);
    this.#running.set(message, running);
    try {
      if (renewed) {
        await renewed;
        if (this.#over(running)) return;
      }
      if (this.#mayHaveKilled(message)) await this.#refuseKiller(message);
      const call = new Call(running, this.#caught, this.reports.stray);
      const result = await callFor(call, () => this.handle(message, running));
      if (this.#over(running)) return;
      const outcome = asOutcome(result);
      if (outcome.following.length || message.collected) await this.settling.follow(message, outcome, running.booked);
      else this.settling.done({ message, result: outcome.result, cost: running.booked });
      this.reports.done(message, result);
    } catch (error) {
      if (this.#over(running)) return;
      await this.#fail(message, error);
    } finally {
      this.#leave(running);
    }
  }

  async #fail(message: Message, error: unknown): Promise<void> {
    this.reports.failed(message, error);
    await this.settling.fail(message, verdict(error));
  }

  /** The handler has let go of an error. It may never end now, so its message has failed and its place is free. */
  readonly #caught = (running: Running, error: unknown): void => {
    running.abort('the handler has let go of an error');
    this.#leave(running);
    void this.#fail(running.message, error);
  };

  /**
   * Whether it may have taken more workers with it than it may. Where RETRIES is a limit, the server counts. The metadata is
   * read for late attempts only, because reading it costs more than the rest of a short handler.
   */
  #mayHaveKilled(message: Message): boolean {
    const { lostWorkers } = this.limits;
    return lostWorkers > 0 && message.attempt > lostWorkers && message.retriesLeft === -1;
  }

  async #refuseKiller({ queue, id }: Message): Promise<void> {
    let timeouts = 0;
    try {
      const reply = await call(this.server, ['DQ.GET', queue, id], queue);
      if (reply !== null) ({ timeouts } = shaped<Record>(reply));
    } catch (error) {
      this.reports.warning(error as Error);
    }
    if (timeouts >= this.limits.lostWorkers) throw new Reject(`given up: ${timeouts} workers were lost with it`);
  }

  /** Ends the handling of a message, and gives its place to others. */
  #leave(running: Running): void {
    if (running.call) running.call.running = undefined;
    if (this.#running.get(running.message) !== running) return;
    this.#running.delete(running.message);
    this.#wake();
    if (!this.#running.size) this.#ended();
  }

  /** Whether another consumer may have the message by now, so that its outcome does not count. */
  #over({ message, aborted }: Running): boolean {
    return aborted || !this.#running.has(message);
  }

  /** All waiting loops check for themselves: the first may wait at the server without using the room. */
  #wake(): void {
    if (this.room > 0) for (const resolve of this.#line.splice(0)) resolve();
  }
}
