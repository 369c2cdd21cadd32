/** The way in which a queue sends and settles: by replies alone, or with a confirmation (durable.ts). */

import { setTimeout as sleep } from 'node:timers/promises';

import type { Server } from './adapter.js';
import { call } from './connection.js';
import { isTransient, pauses } from './errors.js';
import type { Word } from './words.js';

/** Runs commands that change a queue. The words of each are a whole command. */
export interface Changing {
  /** Runs a command once. */
  call(words: readonly Word[]): Promise<unknown>;
  /** Runs a DQ.SEND with an id, and repeats it. Nothing is added twice by that. */
  send(words: readonly Word[], id: string): Promise<unknown>;
  /** Runs a command about receipts. `isDone` says whether a reply means that all was done. */
  settle(words: readonly Word[], isDone: (reply: unknown) => boolean): Promise<unknown>;
  close(): void;
}

/** Runs a function, and repeats it after errors for which `again` returns true, for `patience` ms. */
export async function insist(patience: number, again: (error: unknown) => boolean, run: () => Promise<unknown>): Promise<unknown> {
  const end = performance.now() + patience;
  for (const pause of pauses()) {
    try {
      return await run();
    } catch (error) {
      if (!again(error) || performance.now() + pause > end) throw error;
    }
    await sleep(pause);
  }
  return undefined;
}

/** A reply is enough. */
export class Plainly implements Changing {
  constructor(
    private readonly server: Server,
    private readonly key: string,
    private readonly patience: number,
  ) {}

  call(words: readonly Word[]): Promise<unknown> {
    return call(this.server, words, this.key);
  }

  send(words: readonly Word[]): Promise<unknown> {
    return insist(this.patience, isTransient, () => this.call(words));
  }

  settle(words: readonly Word[]): Promise<unknown> {
    return this.call(words);
  }

  close(): void {}
}
