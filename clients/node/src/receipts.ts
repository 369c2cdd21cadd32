/** Receipts of deliveries, as callers give them and as words of a command. */

import type { Message } from './message.js';
import { type Payload, type Word, word } from './words.js';

/** A receipt, or the message that carries it. */
export type Receipt = number | Message<never> | Message;

/** Returns receipts as words. */
export function receipts(given: Receipt | readonly Receipt[]): Word[] {
  const all = Array.isArray(given) ? (given as readonly Receipt[]) : [given as Receipt];
  return all.map((one) => String(typeof one === 'number' ? one : one.receipt));
}

/** Returns the words of FETCH that ack messages and keep their results. */
export function acks(done: readonly Receipt[], results: readonly Payload[] = []): Word[] {
  if (!done.length) return [];
  const words: Word[] = ['ACK', String(done.length), ...receipts(done)];
  return results.length ? [...words, 'RESULTS', String(results.length), ...results.map(word)] : words;
}
