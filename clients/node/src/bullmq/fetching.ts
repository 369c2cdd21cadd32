/** Takes messages for the calls of a worker, and acks finished ones with the same commands. */

import { randomUUID } from 'node:crypto';

import { CommandError } from '../errors.js';
import { list, text } from '../replies.js';
import type { Word } from '../words.js';
import { type Ahead, MOST_AHEAD, type Taken } from './ahead.js';
import { Awake } from './awake.js';
import { persist } from './persist.js';
import type { Place } from './place.js';

/** A message that is done, and its result. */
export interface Done {
  receipt: string;
  result: string;
}

/** A random part that tells the tokens of this process from those of others that fetch under the same name. */
const PROCESS = randomUUID();

/** The result of a job that returned nothing. */
const NOTHING = 'null';

/** The most messages that a command with a token may ask for. */
const MOST = 1000;

/** The real timer, from before a test replaces it. */
const { setImmediate: soon } = globalThis;

let commands = 0;

/** Names one command. Repeated, it gets the same messages. */
export function newToken(): string {
  return `${PROCESS}:${++commands}`;
}

interface Demand {
  done: Done | undefined;
  /** How many messages the command takes, if they are available. */
  count: number;
  resolve: (taken: Taken | undefined) => void;
  reject: (error: unknown) => void;
}

/** Reads the reply of DQ.FETCH. */
export function takenOf(reply: unknown, since: number): Taken[] {
  return list(reply).map((one) => {
    const [id, receipt, attempt, payload] = one as [unknown, unknown, unknown, Buffer];
    return { id: text(id), receipt: text(receipt), attempt: Number(attempt), payload, since };
  });
}

/**
 * Only one command at a time waits for its reply. It is for all calls that came meanwhile, so a worker with many jobs
 * needs few commands. Each has a token of its own. If a connection is lost, the repeated command gets the same
 * messages.
 */
export class Fetching {
  #demands: Demand[] = [];
  #busy = false;
  readonly #awake = new Awake();

  constructor(
    readonly place: Place,
    readonly ahead: Ahead,
    readonly closed: () => boolean,
    /** Whether other jobs run here. They often end in the same turn of the event loop, and then share a command. */
    readonly others: () => boolean,
  ) {}

  /** The calls that have no reply yet. */
  underway = 0;

  /** The consumer: the name under which the leases are held. */
  consumer = 'bullmq';
  /** Milliseconds. */
  lease = 30_000;

  /** Acks a message, if one is done, and takes the next, and others ahead if `count` is more than one. */
  next(done?: Done, count = 1): Promise<Taken | undefined> {
    this.underway++;
    return new Promise<Taken | undefined>((resolve, reject) => {
      this.#demands.push({ done, count, resolve, reject });
      if (!this.#busy) {
        this.#busy = true;
        if (this.others()) soon(() => void this.#pump());
        else void this.#pump();
      }
    });
  }

  async #pump(): Promise<void> {
    while (this.#demands.length) await this.#serve(this.#demands.splice(0, MOST + 1 - MOST_AHEAD));
    this.#busy = false;
  }

  async #serve(demands: readonly Demand[]): Promise<void> {
    try {
      const since = Date.now();
      const count = demands.length - 1 + Math.max(...demands.map((demand) => demand.count));
      const taken = await renewed(this.place, takenOf(await this.#send(demands, count), since), this.lease);
      this.ahead.keep(taken.slice(demands.length), count, taken.length);
      this.underway -= demands.length;
      for (const [at, demand] of demands.entries()) demand.resolve(taken[at]);
    } catch (error) {
      if (demands.length === 1 || !(error instanceof CommandError)) {
        this.underway -= demands.length;
        for (const demand of demands) demand.reject(error);
        return;
      }
      // The server may refuse one result, such as one that is too long. It has done nothing then, and the others must not fail.
      for (const demand of demands) await this.#serve([demand]);
    }
  }

  async #send(demands: readonly Demand[], count: number): Promise<unknown> {
    const done = demands.flatMap((demand) => demand.done ?? []);
    const words: Word[] = ['LEASE', String(this.lease), 'CONSUMER', this.consumer, 'TOKEN', newToken()];
    if (count > 1) words.push('COUNT', String(count));
    if (done.length) words.push('ACK', String(done.length), ...done.map((one) => one.receipt));
    // A record without a result is that of a job that returned nothing.
    if (done.some(({ result }) => result !== NOTHING)) words.push('RESULTS', String(done.length), ...done.map((one) => one.result));
    const reply = persist(() => this.place.dq('FETCH', ...words), this.closed);
    // While a job runs, its own work may keep the process awake.
    return this.others() ? reply : this.#awake.until(reply);
  }
}

/** Renews the leases of messages whose reply has come late: it may be that of a fetch whose first reply was lost. */
export async function renewed(place: Place, taken: Taken[], lease: number): Promise<Taken[]> {
  const since = Date.now();
  if (taken.every((one) => since - one.since < lease / 3)) return taken;
  try {
    await place.dq('TOUCH', String(lease), ...taken.map(({ receipt }) => receipt));
  } catch {
    return taken;
  }
  return taken.map((one) => ({ ...one, since }));
}
