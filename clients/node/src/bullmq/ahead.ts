/** Messages that a worker has taken ahead of its calls. */

import { persist } from './persist.js';
import type { Place } from './place.js';

/** The real timers, from before a test replaces them. */
const { setTimeout: later, clearTimeout: notLater, setImmediate: soon } = globalThis;

/** A message as DQ.FETCH gives it. */
export interface Taken {
  id: string;
  receipt: string;
  attempt: number;
  payload: Buffer;
  /** By this clock. Its lease has not begun before. */
  since: number;
}

/**
 * The greatest number of messages that one command takes ahead. BullMQ starts no job of a burst before it has asked for
 * all of them, one after another. Taken together, they need no round trip each. It is few, so that other workers get
 * their share.
 */
export const MOST_AHEAD = 16;

/** Milliseconds after which a call is no longer expected: the worker has paused, or takes jobs by hand. */
const PATIENCE = 50;

/**
 * Jobs that were taken for calls to come. The calls come in the same moment, and jobs that they leave are given back.
 */
export class Ahead {
  readonly #taken: Taken[] = [];
  #timer: NodeJS.Timeout | undefined;
  #dry = false;

  constructor(
    readonly place: Place,
    readonly closed: () => boolean,
  ) {}

  get size(): number {
    return this.#taken.length;
  }

  /**
   * Whether the last command has just taken all messages: in this turn of the event loop another one would get nothing.
   */
  get dry(): boolean {
    return this.#dry;
  }

  /** Keeps the messages that a command has taken beyond its calls. `asked` and `got` are of the whole command. */
  keep(taken: readonly Taken[], asked: number, got: number): void {
    if (asked > got) {
      this.#dry = true;
      soon(() => (this.#dry = false));
    }
    if (!taken.length) return;
    this.#taken.push(...taken);
    notLater(this.#timer);
    this.#timer = later(() => void this.giveBack(), PATIENCE).unref();
  }

  take(): Taken | undefined {
    return this.#taken.shift();
  }

  /** Gives back the messages that no call has asked for. No attempt is counted. */
  async giveBack(): Promise<void> {
    const left = this.#taken.splice(0).map(({ receipt }) => receipt);
    if (left.length) await persist(() => this.place.dq('NACK', ...left, 'SILENT'), this.closed).catch(() => {});
  }
}
