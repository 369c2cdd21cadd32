/** The messages and signals that follow from a message that is done. */

import type { Payload, SendOneOptions, Word } from './words.js';
import { options, word } from './words.js';

/** A message that follows. `to` is the name of another queue; without it the message goes to the same queue. */
export interface Next extends SendOneOptions {
  payload: Payload;
  to?: string;
}

/** A signal to the message of this id. `to` is the name of its queue; without it the message is in the same queue. */
export interface Signal {
  signal: string;
  data?: Payload;
  to?: string;
}

/**
 * Returned by a handler: its message is done, and these messages and signals follow from it, in one step (DQ.ACKSEND).
 *
 * A crash leaves all of that or nothing. If the server refuses it (a full queue, say), the message has failed.
 */
export class Follow {
  readonly following: readonly (Next | Signal)[];
  readonly result: unknown;

  constructor(following: Next | Signal | readonly (Next | Signal)[], { result }: { result?: unknown } = {}) {
    this.following = Array.isArray(following) ? (following as readonly (Next | Signal)[]) : [following as Next | Signal];
    this.result = result;
  }
}

/**
 * Returns the messages and signals as words of DQ.ACKSEND of the queue `key`. `prefix` is what the client puts before
 * each key.
 */
export function followingWords(following: readonly (Next | Signal)[], key: string, prefix: string): Word[] {
  return following.flatMap((one): Word[] => {
    const dest = one.to === undefined ? key : prefix + one.to;
    if ('signal' in one) return ['SIGNAL', dest, one.signal, word(one.data ?? '')];
    const { payload, to: _, ...given } = one;
    return ['NEXT', dest, word(payload), ...options(given)];
  });
}
