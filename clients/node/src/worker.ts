/** A worker. */

import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';

import { within } from './bounds.js';
import { ConnectionError } from './errors.js';
import { Family } from './family.js';
import { fetchFromFamily } from './familyfetching.js';
import { type Crew, fetchFromQueue } from './fetching.js';
import { type Context, Handling } from './handling.js';
import type { Message } from './message.js';
import { throughHandle } from './middleware.js';
import type { Jobs, Queue } from './queue.js';
import { LAST_WORDS, Settling } from './settling.js';
import { watchStrays } from './stray.js';
import { textOf } from './thrown.js';

/** A function that handles a message. Its return value is kept as the result: text as it is, anything else as JSON. */
export type Handler<T = unknown> = (message: Message<T>, context: Context) => unknown;

/** A function for each type of message. `*` handles all that no other function handles. */
export type Handlers<J extends Jobs = Jobs> = { [K in keyof J]?: Handler<J[K]> } & { '*'?: Handler };

/** The options of a Worker. Spans of time are ms. */
export interface WorkerOptions {
  /** How many messages are handled at a time. The default is 1. */
  concurrency?: number;
  /** How long after a crash of this process others wait for its messages. The default is 30,000. */
  lease?: number;
  /** How long one fetch waits at the server. `stop` may take that long, up to `grace` and a second. The default is 2,000. */
  block?: number;
  /** How long handlers may go on after `stop`. The default is 20,000. */
  grace?: number;
  /**
   * How long a handler may take. After it the lease ends, and the message is delivered again. A handler that goes on for
   * `grace` all the same no longer counts for `concurrency`. By default no limit.
   */
  timeLimit?: number;
  /**
   * After how many lost workers a message without limit of RETRIES is given up. The default is 3, and 0 means never. Where
   * RETRIES is a limit, the server counts lost workers as the other failures.
   */
  lostWorkers?: number;
  /** The name that DQ.CONSUMERS shows. No two workers may share it. The default has host, process and a number. */
  consumer?: string;
}

/** The events of a worker. */
export interface WorkerEvents {
  /** A handler has returned. */
  done: [message: Message, result: unknown];
  /** A handler has thrown. */
  failed: [message: Message, error: unknown];
  /** The lease of a message that is being handled is over. Another consumer may have it now. */
  lost: [message: Message];
  /** A command has failed. It is tried again if that can help, or the message comes back when its lease ends. */
  warning: [error: Error];
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
let workers = 0;

/**
 * Handles the messages of a queue or a family, up to `concurrency` at a time.
 *
 * One connection of its own waits for messages, and acks the ones before in the same round trip. A handler that returns
 * is done, and can return a Follow. One that throws has failed, and the server decides by RETRIES and BACKOFF what comes
 * next. Throw Retry, Reject, Snooze or Park to decide it yourself.
 *
 * An error that a handler lets go of (a rejection that nobody awaits, an exception in a timer) is a failure of its message,
 * too, and the worker goes on.
 *
 * While handlers run, a heartbeat renews their leases. So `lease` is not the time that a handler may take. A handler must
 * not block the event loop for longer than two thirds of it.
 */
export class Worker<J extends Jobs = Jobs> extends EventEmitter<WorkerEvents> {
  readonly consumer: string;
  readonly #source: Queue<J> | Family<J>;
  readonly #handling: Handling;
  readonly #settling: Settling;
  readonly #stopping = new AbortController();
  readonly #cut = new AbortController();
  readonly #end = new AbortController();
  readonly #crew: Crew;
  readonly #grace: number;
  #started = false;
  #failure: { error: unknown } | undefined;

  constructor(source: Queue<J> | Family<J>, handlers: Handlers<J> | Handler, options: WorkerOptions = {}) {
    super();
    const { concurrency = 1, lease = 30_000, block = 2_000, grace = 20_000, lostWorkers = 3, timeLimit } = options;
    if (!(concurrency >= 1)) throw new RangeError('concurrency must be at least 1');
    if (!(lease >= 1)) throw new RangeError('lease must be at least 1 ms');
    if (!(block >= 1)) throw new RangeError('block must be at least 1 ms');
    this.consumer = options.consumer ?? `${hostname()}:${process.pid}:${++workers}`;
    this.#source = source;
    this.#grace = grace;
    const { server, middleware } = source;
    const chosen = chooser(handlers);
    const handle = (message: Message, context: Context) => throughHandle(middleware, message, context, () => chosen(message, context));
    const warn = (error: Error) => this.#report('warning', error);
    this.#settling = new Settling(server, lease, warn);
    this.#handling = new Handling(server, { concurrency, lease, timeLimit, grace, lostWorkers }, middleware.length ? handle : chosen, this.#settling, {
      done: (message, result) => this.#report('done', message, result),
      failed: (message, error) => this.#report('failed', message, error),
      lost: (message) => this.#report('lost', message),
      warning: warn,
      stray: (thrown) => {
        const error = new Error(`a handler that has ended has let go of an error: ${textOf(thrown)}`, { cause: thrown });
        // Nothing else reports the error.
        if (this.listenerCount('warning')) warn(error);
        else process.emitWarning(error);
      },
    });
    const start = randomBytes(6).toString('base64url');
    let calls = 0;
    this.#crew = {
      server,
      handling: this.#handling,
      settling: this.#settling,
      lease,
      block,
      consumer: this.consumer,
      stopping: this.#stopping.signal,
      cut: this.#cut.signal,
      end: this.#end.signal,
      token: () => `${start}${++calls}`,
      warn,
      fail: (error) => {
        this.#failure ??= { error };
        this.stop();
      },
    };
  }

  /**
   * Works until it is stopped. Throws errors that will not pass (no right, a key of another type). A worker runs once.
   *
   * `signal` stops it when it is aborted. With `signals`, SIGTERM and SIGINT stop it; a second one has its usual effect.
   */
  async run({ signal, signals = false }: { signal?: AbortSignal; signals?: boolean } = {}): Promise<void> {
    if (this.#started) throw new Error('a worker runs once');
    this.#started = true;
    const stop = () => this.stop();
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    const unwatch = signals ? watch(stop) : () => {};
    const unwatchStrays = watchStrays();
    const heart = setInterval(() => void this.#handling.beat(), this.#crew.lease / 3);
    try {
      await this.#work();
    } finally {
      clearInterval(heart);
      unwatchStrays();
      unwatch();
      signal?.removeEventListener('abort', stop);
    }
  }

  /**
   * Makes `run` stop gracefully: it fetches no more, waits for its handlers, and gives back the other messages. `run`
   * ends within `grace` and two seconds, also if the server is gone. A message whose outcome did not reach the server
   * comes back when its lease ends.
   */
  stop(): void {
    this.#stopping.abort();
    this.#handling.close();
  }

  async #work(): Promise<void> {
    const source = this.#source;
    const fetching = source instanceof Family ? fetchFromFamily(source, this.#crew) : fetchFromQueue(source.key, this.#crew);
    const fetched = fetching.catch(this.#crew.fail);
    await new Promise<void>((resolve) => {
      if (this.#stopping.signal.aborted) resolve();
      this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    // A command may never be answered: ioredis can keep it until there is a server again. So nothing waits for longer.
    const end = performance.now() + this.#grace + LAST_WORDS;
    this.#settling.endAt(end);
    // The acks of such a fetch are sent alone in the time that is left.
    const cutting = setTimeout(() => this.#cut.abort(new ConnectionError('the worker stops')), this.#grace + LAST_WORDS / 2);
    await this.#handling.finish(this.#grace);
    const settled = this.#settle(fetched);
    const inTime = (await within(end - performance.now(), settled)) && (await settled);
    clearTimeout(cutting);
    for (const one of [this.#cut, this.#end]) one.abort(new ConnectionError('the worker has stopped'));
    if (!inTime) this.#report('warning', new ConnectionError('the server does not answer, so leases must end what is not settled'));
    if (this.#failure) throw this.#failure.error;
  }

  /** Settles all messages. Returns whether the server answered in time. */
  async #settle(fetched: Promise<void>): Promise<boolean> {
    // A fetch that waits at the server may have taken messages, which it gives back.
    await Promise.all([this.#settling.giveBack(this.#handling.abandon()), fetched]);
    return this.#settling.finish();
  }

  /** An exception of a listener must not count as one of a handler. */
  #report<E extends keyof WorkerEvents>(event: E, ...words: WorkerEvents[E]): void {
    if (this.listenerCount(event)) process.nextTick(() => (this.emit as (...all: unknown[]) => void).call(this, event, ...words));
  }
}

/** Calls a function at the first SIGTERM or SIGINT. Returns the function that ends this. */
function watch(stop: () => void): () => void {
  const unwatch = () => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  const onSignal = () => {
    unwatch();
    stop();
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return unwatch;
}

/** Returns the function that calls the handler of a message. A message whose type has none fails, so that it is seen. */
function chooser<J extends Jobs>(handlers: Handlers<J> | Handler): (message: Message, context: Context) => unknown {
  if (typeof handlers === 'function') return handlers;
  const known = new Map(Object.entries(handlers) as [string, Handler | undefined][]);
  return (message, context) => {
    const handler = (message.type === null ? undefined : known.get(message.type)) ?? known.get('*');
    if (!handler) throw new Error(`no handler for type ${JSON.stringify(message.type)}`);
    return handler(message, context);
  };
}
