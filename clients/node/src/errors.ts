/** Errors that this package throws, and those that handlers throw to decide the outcome of a message. */

import { messageOf } from './thrown.js';

/** An error reply of the server. Nothing has changed. */
export class CommandError extends Error {
  override name = 'CommandError';

  /** `code` is the first word of the reply, such as `ERR`, `WRONGTYPE` or `NOPERM`. */
  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** MAXLEN or MAXBYTES of the queue is reached. Nothing was added. */
export class QueueFullError extends CommandError {
  override name = 'QueueFullError';
}

/** The queue takes no new messages (SENDS OFF). Nothing was added. */
export class QueueClosedError extends CommandError {
  override name = 'QueueClosedError';
}

/** The connection was lost before the reply. It is unknown whether the command was run. */
export class ConnectionError extends Error {
  override name = 'ConnectionError';
}

/**
 * A queue with `durable` has run a command, and it is not confirmed that this lasts: the queue is as `reply` says on the
 * server that has replied, and may lose that again.
 */
export class NotConfirmedError extends Error {
  override name = 'NotConfirmedError';
  /** The reply of the server to the command. */
  reply: unknown;
  /** The id of the message, of `send`. It may be sent again with this id. */
  id: string | undefined;
  /** Whether the log of the server was synced. */
  readonly synced: boolean;
  /** How many replicas have confirmed. */
  readonly replicas: number;

  /** `cause` is the error that came in place of a confirmation, if it was not only late. */
  constructor(why: string, known: { reply: unknown; synced?: boolean; replicas?: number } & ErrorOptions) {
    super(`the command was run, but it is not confirmed that this lasts: ${why}`, known.cause ? { cause: known.cause } : {});
    this.reply = known.reply;
    this.synced = known.synced ?? false;
    this.replicas = known.replicas ?? 0;
  }
}

/** Thrown by a handler to fail, and to be tried again after `delay` ms instead of the queue's backoff. */
export class Retry extends Error {
  override name = 'Retry';
  readonly delay: number | undefined;

  constructor(message = '', options: { delay?: number } & ErrorOptions = {}) {
    super(message, options);
    this.delay = options.delay;
  }
}

/** Thrown by a handler if the message can never succeed. It is dead at once, with the reason `rejected`. */
export class Reject extends Error {
  override name = 'Reject';
}

/**
 * Thrown by a handler to hand the message back without blame: no attempt and no failure is counted.
 *
 * The message comes again after `delay` ms. `pauseGroup` and `pauseQueue` (ms) pause its group, or the whole queue, in
 * the same step, as a "429, Retry-After" asks for.
 */
export class Snooze extends Error {
  override name = 'Snooze';
  readonly delay: number | undefined;
  readonly pauseGroup: number | undefined;
  readonly pauseQueue: number | undefined;

  constructor(message = '', options: { delay?: number; pauseGroup?: number; pauseQueue?: number } & ErrorOptions = {}) {
    super(message, options);
    this.delay = options.delay;
    this.pauseGroup = options.pauseGroup;
    this.pauseQueue = options.pauseQueue;
  }
}

/**
 * Thrown by a handler whose message has to wait for a signal (`queue.signal`): an approval, the answer of a partner.
 *
 * No worker is bound meanwhile, and no attempt and no failure is counted. The next delivery has the text of the signal as
 * `message.signal`. `for` (at least 1 ms) bounds the wait: it is delivered then, and `message.signal` is null. `note` stays
 * with the message for that delivery.
 */
export class Park extends Error {
  override name = 'Park';
  readonly for: number | undefined;
  readonly note: string | undefined;

  constructor(message = '', options: { for?: number; note?: string } & ErrorOptions = {}) {
    super(message, options);
    this.for = options.for;
    this.note = options.note;
  }
}

/** Returns an error of a Redis library as an error of this package. A mistake of the caller stays what it is. */
export function translated(error: unknown): Error {
  if (error instanceof TypeError || error instanceof CommandError || error instanceof ConnectionError) return error;
  const message = messageOf(error);
  if (!isErrorReply(error)) return new ConnectionError(message, { cause: error });
  const code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR';
  const Kind = code === 'QUEUEFULL' ? QueueFullError : code === 'QUEUECLOSED' ? QueueClosedError : CommandError;
  return new Kind(code, message, { cause: error });
}

/** ioredis throws `ReplyError`, and node-redis throws subclasses of `ErrorReply`. */
function isErrorReply(error: unknown): boolean {
  for (let one: unknown = error; one; one = Object.getPrototypeOf(one)) {
    const name = (one as { constructor?: { name?: string } }).constructor?.name;
    if (name === 'ReplyError' || name === 'ErrorReply') return true;
  }
  return false;
}

/** A script holds the server up (BUSY), its disk is full (MISCONF), its replicas are away (NOREPLICAS), and so on. */
const PASSING = new Set([
  ...['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'UNBLOCKED', 'MOVED', 'ASK'],
  ...['BUSY', 'MISCONF', 'NOREPLICAS'],
]);

/** Returns whether another try can help: after a lost connection, while a server loads or refuses writes, in a failover. */
export function isTransient(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof CommandError && PASSING.has(error.code));
}

/** Yields the milliseconds to wait before each further try. They double up to 1 s and are partly random. */
export function* pauses(): Generator<number, never> {
  for (let pause = 20; ; pause = Math.min(pause * 2, 1000)) yield pause * (0.5 + Math.random() / 2);
}
