/** The leases that a backend holds: BullMQ names a job and a token where dq has a receipt. */

import { MISSING, NOT_IN_STATE, NO_LOCK, OTHER_LOCK, failure } from './failure.js';
import { type Gathered, type Stored, gathered, seen, stored } from './job.js';
import type { Place } from './place.js';

export interface Lease {
  receipt: string;
  token: string;
  /** By this clock. No other worker can have the job before. */
  until: number;
  stored: Stored;
  gathered: Gathered;
}

/** The consumer that takes with a token. Workers number their tokens: `id:1`, `id:2`. */
export function consumerOf(token: string): string {
  return token.split(':')[0] || 'bullmq';
}

/** Whether a token is one of those that a worker numbers. */
export function isNumbered(token: string): boolean {
  return /:\d+$/.test(token);
}

/** The consumer in the words of dq: who takes, on which connection, and the name of the worker. */
export function consumer(worker: string, connection = '', name?: string): string {
  return name ? `${worker}${connection} ${name}` : `${worker}${connection}`;
}

function isOf(worker: string, consumer: string | null): boolean {
  return consumer !== null && consumer.startsWith(worker) && [' ', ':', ''].includes(consumer.charAt(worker.length));
}

export class Leases {
  readonly #held = new Map<string, Lease>();

  constructor(readonly place: Place) {}

  hold(id: string, lease: Lease): void {
    this.#held.set(id, lease);
  }

  held(id: string): Lease | undefined {
    return this.#held.get(id);
  }

  /** How many jobs run here. */
  get count(): number {
    return this.#held.size;
  }

  drop(id: string): void {
    this.#held.delete(id);
  }

  /** The lease of a job. Asks the server if another backend took it. Throws what BullMQ's own backends throw. */
  async of(id: string, token: string | undefined, command: string): Promise<Lease> {
    const held = this.#held.get(id);
    if (held) {
      if (token && token !== '0' && held.token !== token) throw failure(OTHER_LOCK, id, command);
      return held;
    }
    const found = seen(await this.place.dq('GET', id));
    if (!found) throw failure(MISSING, id, command);
    if (found.state !== 'running' || found.receipt === null) throw failure(token && token !== '0' ? NO_LOCK : NOT_IN_STATE, id, command);
    if (token && token !== '0' && !isOf(consumerOf(token), found.consumer)) throw failure(OTHER_LOCK, id, command);
    const first = stored(found.payload);
    return { receipt: String(found.receipt), token: token ?? '', until: 0, stored: first, gathered: gathered(first, found.note) };
  }
}
