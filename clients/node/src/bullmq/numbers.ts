/** The ids of jobs that were given none. BullMQ's are numbers, so these are, too. */

import type { Place } from './place.js';

/** The most numbers that a producer takes from the server at once. */
const MOST = 1024;

/**
 * Each producer takes blocks of numbers, so that the id of a job needs no round trip. With an id, an add whose reply
 * was lost can be repeated.
 */
export class Numbers {
  #next = 1;
  #last = 0;
  #block = 1;

  constructor(readonly place: Place) {}

  /** Returns `count` ids in a row. */
  async take(count: number): Promise<string[]> {
    if (this.#last - this.#next + 1 < count) {
      const block = Math.max(count, this.#block);
      this.#block = Math.min(MOST, this.#block * 2);
      const last = Number(await this.place.call('INCRBY', this.place.of('id'), String(block)));
      // Another call may have taken a block meanwhile. The rest of the previous block is not used.
      this.#next = last - block + 1;
      this.#last = last;
    }
    const first = this.#next;
    this.#next += count;
    return Array.from({ length: count }, (_, at) => String(first + at));
  }
}
