/** A bound for a worker that stops: a server may accept connections and answer nothing. */

import { ConnectionError } from '../errors.js';

/** The real ones, from before a test replaces them. */
const { setTimeout: later, clearTimeout: notLater } = globalThis;

/** The longest time that a timer of Node takes. */
const LONGEST = 2 ** 31 - 1;

interface Wait {
  giveUp: () => void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * While a worker stops, a command has so many ms for its reply. The first one that has none by then says that the server is
 * silent: all commands that wait are given up with it, and no other one is sent. So a job whose ack is not confirmed is not
 * called failed in the next moment.
 */
export class Bound {
  readonly #waits = new Set<Wait>();
  #ms: number | undefined;
  #over = false;

  /** Whether the server is silent. */
  get over(): boolean {
    return this.#over;
  }

  /** Sends a command and awaits its reply. */
  reply<T>(send: () => Promise<T>): Promise<T> {
    if (this.#over) return Promise.reject(silent());
    return new Promise((resolve, reject) => {
      const wait: Wait = { giveUp: () => reject(silent()), timer: undefined };
      const ended = (settle: () => void) => {
        notLater(wait.timer);
        this.#waits.delete(wait);
        settle();
      };
      this.#waits.add(wait);
      if (this.#ms !== undefined) this.#time(wait);
      send().then(
        (reply) => ended(() => resolve(reply)),
        (error: unknown) => ended(() => reject(error as Error)),
      );
    });
  }

  /** The worker stops. A command that waits already has so many ms from now on. */
  begin(ms: number): void {
    this.#ms = ms;
    for (const wait of this.#waits) this.#time(wait);
  }

  /** The worker goes on. */
  go(): void {
    this.#ms = undefined;
    this.#over = false;
    for (const { timer } of this.#waits) notLater(timer);
  }

  #time(wait: Wait): void {
    notLater(wait.timer);
    wait.timer = later(() => this.#giveUp(), Math.min(this.#ms!, LONGEST));
  }

  #giveUp(): void {
    this.#over = true;
    for (const { giveUp, timer } of this.#waits) {
      notLater(timer);
      giveUp();
    }
    this.#waits.clear();
  }
}

function silent(): ConnectionError {
  return new ConnectionError('the server does not answer');
}
