/** The connection on which a worker waits for the next job. */

import { setTimeout as sleep } from 'node:timers/promises';

import { within } from '../bounds.js';
import { Connection } from '../connection.js';
import { CommandError, ConnectionError, isTransient, pauses } from '../errors.js';
import type { Word } from '../words.js';
import type { Taken } from './ahead.js';
import { newToken, renewed, takenOf } from './fetching.js';
import type { Place } from './place.js';

/** Milliseconds that a reply is on its way at most. A lease has margin for no more. */
const MOST_ON_THE_WAY = 500;

export class Waiting {
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  /** The number of the connection at the server, by which the wait is ended. */
  #client = '';
  #stopped = false;
  #closed = false;
  #cut = new AbortController();
  #taking = false;

  constructor(
    readonly place: Place,
    /** The name of the connection. */
    readonly name: string,
  ) {}

  /** Connects, so that the worker can be seen. */
  connect(): Promise<Connection> {
    if (this.#connection?.usable) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Connection> {
    const node = await this.place.server.nodeOf(this.place.key);
    const connection = await Connection.to(node, this.#cut.signal);
    await named(connection, this.name);
    this.#client = String(await allowed(connection.call(['CLIENT', 'ID'])));
    if (this.#closed) connection.close();
    return (this.#connection = connection);
  }

  /** Whether no wait may begin. */
  get stopped(): boolean {
    return this.#stopped || this.#closed;
  }

  /** Waits up to `ms` for messages and takes up to `count` of them. */
  async take(count: number, ms: number, lease: number, consumer: string): Promise<Taken[]> {
    this.#taking = true;
    try {
      return await this.#take(count, ms, lease, consumer);
    } finally {
      this.#taking = false;
    }
  }

  async #take(count: number, ms: number, lease: number, consumer: string): Promise<Taken[]> {
    const words: Word[] = ['DQ.FETCH', this.place.key, 'COUNT', String(count), 'BLOCK', String(ms), 'LEASE', String(lease)];
    words.push('CONSUMER', consumer, 'TOKEN', newToken());
    const begun = Date.now();
    let first: number | undefined;
    for (const pause of pauses()) {
      if (this.#stopped || this.#closed) return [];
      try {
        const connection = await this.connect();
        if (this.#stopped) return [];
        const sent = Date.now();
        const reply = await connection.call(words, ms);
        // The leases of a lost reply began then.
        const taken = takenOf(reply, first ?? Math.max(sent, Date.now() - MOST_ON_THE_WAY));
        return await renewed(this.place, taken, lease);
      } catch (error) {
        if (this.#stopped || this.#closed) return [];
        if (!isTransient(error)) throw error;
        first ??= begun;
        await sleep(pause);
      }
    }
    return [];
  }

  /** Ends the wait. What it has taken already still comes, unless the server is silent for `ms`. */
  async stop(ms: number): Promise<void> {
    this.#stopped = true;
    let silent = false;
    const timer = setTimeout(() => {
      silent = true;
      this.#cutOff();
    }, ms);
    // The command may be on its way, and then there is nothing to end yet.
    while (this.#taking && !silent && !this.#closed) {
      if (this.#connection?.usable) await within(ms, this.place.call('CLIENT', 'UNBLOCK', this.#client).catch(() => {}));
      await sleep(5);
    }
    clearTimeout(timer);
  }

  /** Gives the connection up, and one that is being made. */
  #cutOff(): void {
    this.#cut.abort(new ConnectionError('the worker stops'));
    this.#cut = new AbortController();
    this.#connection?.close();
  }

  /** Lets further waits begin. */
  go(): void {
    this.#stopped = false;
  }

  close(): void {
    this.#closed = true;
    this.#cutOff();
  }
}

/** Gives a connection its name, by which it is found. The server takes no name with a space or a letter beyond ASCII. */
export async function named(connection: Connection, name: string): Promise<void> {
  await allowed(connection.call(['CLIENT', 'SETNAME', name.replace(/[^!-~]/g, '_')]));
}

/** Leaves out what the server refuses: a worker works also if it cannot be seen. */
async function allowed(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (error instanceof CommandError) return '';
    throw error;
  }
}
