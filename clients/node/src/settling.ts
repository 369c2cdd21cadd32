/** How a worker tells the server what became of messages. */

import { setTimeout as sleep } from 'node:timers/promises';

import { within } from './bounds.js';
import { call, type Server } from './connection.js';
import { isTransient, pauses } from './errors.js';
import type { Message } from './message.js';
import { receipts } from './queue.js';
import { options, type Payload, type Word, word } from './words.js';

/** A message that is done, with its result. */
export interface Done {
  message: Message;
  result: Payload | undefined;
}

/** Milliseconds for which a stopping worker waits for a server that does not answer, once its handlers have ended. */
export const LAST_WORDS = 2000;

/** Acks, nacks and gives back, and repeats that while the connection is down. */
export class Settling {
  #done: Done[] = [];
  #eager = true;
  #scheduled = false;
  #end = Infinity;
  readonly #under = new Set<Promise<unknown>>();

  constructor(
    private readonly server: Server,
    private readonly lease: number,
    private readonly warn: (error: Error) => void,
  ) {}

  /** Acks a message: with the next fetch if that is soon, otherwise at once. */
  done(done: Done): void {
    this.#done.push(done);
    this.#schedule();
  }

  /** From now on, the next fetch is soon, and takes what is done. */
  hold(): void {
    this.#eager = false;
  }

  /** From now on, the next fetch may be far, so acks go out at once. */
  wait(): void {
    this.#eager = true;
    this.#schedule();
  }

  /**
   * Takes what is done, for a fetch that acks it. All of it has a result, or none has: RESULTS has a text for each
   * receipt, and an empty text is not the same as no result.
   */
  take(): Done[] {
    const done = this.#done;
    const plain = done.filter(({ result }) => result === undefined);
    this.#done = plain.length ? done.filter(({ result }) => result !== undefined) : [];
    this.#flush();
    return plain.length ? plain : done;
  }

  /** Takes back what a fetch could not ack. An ack that the server has seen is stale the second time. */
  restore(done: Done[]): void {
    this.#done.unshift(...done);
  }

  /** Gives messages back as if they had not been delivered. */
  async giveBack(messages: readonly Message[]): Promise<void> {
    await Promise.all(
      byQueue(messages, (message) => message).map(([queue, all]) => this.insist('NACK', queue, [...receipts(all), 'SILENT'])),
    );
  }

  /** Sends a command, and repeats it until the lease is over or the worker must end. Returns whether it was answered. */
  async insist(verb: string, queue: string, words: readonly Word[]): Promise<boolean> {
    const trying = this.#try(verb, queue, words);
    this.#under.add(trying);
    try {
      return await trying;
    } finally {
      this.#under.delete(trying);
    }
  }

  /** Repeats no command after this point of `performance.now()`. */
  endAt(end: number): void {
    this.#end = Math.min(this.#end, end);
  }

  /** Acks what is done, and waits until everything is settled or given up. Returns whether the server answered in time. */
  async finish(): Promise<boolean> {
    this.endAt(performance.now() + LAST_WORDS);
    this.wait();
    this.#flush();
    return within(this.#end - performance.now(), this.#settled());
  }

  async #settled(): Promise<void> {
    while (this.#under.size) await Promise.all(this.#under);
  }

  async #try(verb: string, queue: string, words: readonly Word[]): Promise<boolean> {
    const end = performance.now() + this.lease;
    for (const pause of pauses()) {
      try {
        await call(this.server, [`DQ.${verb}`, queue, ...words], queue);
        return true;
      } catch (error) {
        this.warn(error as Error);
        if (!isTransient(error) || performance.now() + pause > Math.min(end, this.#end)) return false;
      }
      await sleep(pause);
    }
    return false;
  }

  #schedule(): void {
    if (!this.#eager || this.#scheduled || !this.#done.length) return;
    this.#scheduled = true;
    // What ends in the same turn of the event loop is acked together.
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#eager) this.#flush();
    });
  }

  #flush(): void {
    const done = this.#done.splice(0);
    for (const [queue, all] of byQueue(done, ({ message }) => message)) {
      const plain = all.filter(({ result }) => result === undefined).map(({ message }) => message);
      if (plain.length) void this.insist('ACK', queue, receipts(plain));
      for (const { message, result } of all) {
        if (result !== undefined) void this.insist('ACK', queue, [...receipts(message), ...options({ result: word(result) })]);
      }
    }
  }
}

/** Sorts by queue, because a command settles the messages of one. */
export function byQueue<T>(all: readonly T[], message: (one: T) => Message): [string, T[]][] {
  const found = new Map<string, T[]>();
  for (const one of all) {
    const { queue } = message(one);
    const same = found.get(queue);
    if (same) same.push(one);
    else found.set(queue, [one]);
  }
  return [...found];
}
