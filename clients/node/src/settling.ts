/** The way in which a worker tells the server the outcome of messages. */

import { setTimeout as sleep } from 'node:timers/promises';

import { within } from './bounds.js';
import type { Server } from './adapter.js';
import { call } from './connection.js';
import { effectWords } from './effects.js';
import { CommandError, isTransient, pauses } from './errors.js';
import { followingWords } from './follow.js';
import type { Message } from './message.js';
import type { NackOptions } from './queue.js';
import { receipts } from './receipts.js';
import type { Outcome } from './verdict.js';
import { options, type Payload, type Word } from './words.js';

/** A message that is done, with its result, and its real cost for its limits. */
export interface Done {
  message: Message;
  result: Payload | undefined;
  cost?: number | undefined;
}

/** Milliseconds for which a stopping worker waits for a silent server, once its handlers have ended. `stop` allows two seconds. */
export const LAST_WORDS = 1500;

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

  /** Acks a message: with the next fetch if that follows soon, otherwise at once. */
  done(done: Done): void {
    // A FETCH that acks has no option for the cost of each message.
    if (done.cost !== undefined) return void this.#track(this.#finish(done));
    this.#done.push(done);
    this.#schedule();
  }

  /** From now on, the next fetch follows soon and acks the finished messages. */
  hold(): void {
    this.#eager = false;
  }

  /** From now on, the next fetch may take long, so acks are sent at once. */
  wait(): void {
    this.#eager = true;
    this.#schedule();
  }

  /**
   * Takes the finished messages, for a fetch that acks them. All of it has a result, or none has: RESULTS has a text
   * for each receipt, and an empty text is not the same as no result.
   */
  take(): Done[] {
    const done = this.#done;
    const plain = done.filter(({ result }) => result === undefined);
    this.#done = plain.length ? done.filter(({ result }) => result !== undefined) : [];
    this.#flush();
    return plain.length ? plain : done;
  }

  /** Takes back messages that a fetch could not ack. An ack that the server has seen is stale the second time. */
  restore(done: Done[]): void {
    this.#done.unshift(...done);
  }

  /** Gives messages back as if they had not been delivered. */
  async giveBack(messages: readonly Message[]): Promise<void> {
    await Promise.all(
      byQueue(messages, (message) => message).map(([queue, all]) => this.insist('NACK', queue, [...receipts(all), 'SILENT'])),
    );
  }

  /** Nacks a message whose handler has failed. If the server refuses what is to be done with it, it fails plainly. */
  fail(message: Message, given: NackOptions): Promise<void> {
    return this.#track(this.#fail(message, given));
  }

  /**
   * Sends a command, and repeats it until the lease is over or the worker must end. Returns the error if it was refused or
   * not answered.
   */
  insist(verb: string, queue: string, words: readonly Word[]): Promise<Error | undefined> {
    return this.#track(this.#try(verb, queue, words));
  }

  async #fail(message: Message, given: NackOptions): Promise<void> {
    const nack = (how: NackOptions) => this.#try('NACK', message.queue, [...receipts(message), ...options(how)]);
    const refusal = await nack(given);
    if (refusal instanceof CommandError) await nack({ error: refusal.message });
  }

  /**
   * Acks a message, does its effects, and sends the messages that follow from it, in one step. Throws if the server refuses
   * that. A message that others follow from has no real cost.
   */
  async follow(message: Message, { result, following }: Outcome, cost: number | undefined): Promise<void> {
    const { prefix } = this.server;
    const [verb, own] = following.length ? ['ACKSEND', { result }] : ['ACK', { result, cost }];
    const words = [...options(own), ...effectWords(message.collected, prefix), ...followingWords(following, message.queue, prefix)];
    const refusal = await this.insist(verb, message.queue, [...receipts(message), ...words]);
    if (refusal instanceof CommandError) throw refusal;
  }

  /** Acks a message with its result. If the server refuses the result, the message is dead: its work is done. */
  async #finish({ message, result, cost }: Done): Promise<void> {
    const refusal = await this.#try('ACK', message.queue, [...receipts(message), ...options({ result, cost })]);
    if (refusal instanceof CommandError) await this.#fail(message, { fatal: true, error: `the result was refused: ${refusal.message}` });
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#under.add(work);
    try {
      return await work;
    } finally {
      this.#under.delete(work);
    }
  }

  /** Repeats no command after this point of `performance.now()`. */
  endAt(end: number): void {
    this.#end = Math.min(this.#end, end);
  }

  /**
   * Acks the finished messages, and waits until all are settled or given up. Returns whether the server answered in
   * time.
   */
  async finish(): Promise<boolean> {
    this.endAt(performance.now() + LAST_WORDS);
    this.wait();
    this.#flush();
    return within(this.#end - performance.now(), this.#settled());
  }

  async #settled(): Promise<void> {
    while (this.#under.size) await Promise.all(this.#under);
  }

  async #try(verb: string, queue: string, words: readonly Word[]): Promise<Error | undefined> {
    const end = performance.now() + this.lease;
    for (const pause of pauses()) {
      try {
        await call(this.server, [`DQ.${verb}`, queue, ...words], queue);
        return undefined;
      } catch (error) {
        this.warn(error as Error);
        if (!isTransient(error) || performance.now() + pause > Math.min(end, this.#end)) return error as Error;
      }
      await sleep(pause);
    }
    return undefined;
  }

  #schedule(): void {
    if (!this.#eager || this.#scheduled || !this.#done.length) return;
    this.#scheduled = true;
    // Messages that end in the same turn of the event loop are acked together.
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
      for (const one of all) if (one.result !== undefined) void this.#track(this.#finish(one));
    }
  }
}

/** Sorts messages by queue, because a command settles those of one queue. */
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
