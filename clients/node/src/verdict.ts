/** The consequence of a handler's end for its message. */

import { Park, Reject, Retry, Snooze } from './errors.js';
import { Follow } from './follow.js';
import type { NackOptions } from './queue.js';
import { isA, messageOf, textOf } from './thrown.js';
import type { Payload } from './words.js';

/** The longest text of an error that is kept with a message. */
const ERROR_LENGTH = 1000;

/** The return value of a handler: the result of its message, and the messages that follow from it. */
export interface Outcome {
  result: Payload | undefined;
  following: Follow['following'];
}

/** Reads the return value of a handler. Throws if it has no JSON. */
export function asOutcome(returned: unknown): Outcome {
  if (isA(returned, Follow)) return { result: asResult(returned.result), following: returned.following };
  return { result: asResult(returned), following: [] };
}

/**
 * Converts the return value of a handler to the result of its message. Throws if it has no JSON. An empty text is none.
 */
export function asResult(result: unknown): Payload | undefined {
  if (result === undefined || result === '') return undefined;
  return typeof result === 'string' || isA(result, Uint8Array) ? result : JSON.stringify(result);
}

/** Returns the options of the NACK for the error that a handler has thrown. */
export function verdict(error: unknown): NackOptions {
  if (isA(error, Snooze)) {
    const [group, queue] = [span(error.pauseGroup), span(error.pauseQueue)];
    const pause = group ? (['GROUP', group] as const) : queue ? (['QUEUE', queue] as const) : undefined;
    return { silent: true, delay: span(error.delay), pause, error: shortened(messageOf(error)) };
  }
  if (isA(error, Park)) {
    const note = typeof error.note === 'string' ? error.note : undefined;
    return { silent: true, park: span(error.for) || true, note, error: shortened(messageOf(error)) };
  }
  if (isA(error, Retry)) return { delay: span(error.delay), error: shortened(messageOf(error)) };
  if (isA(error, Reject)) return { fatal: true, error: shortened(messageOf(error)) };
  return { error: shortened(textOf(error)) };
}

/** Returns a time in whole ms, or none if it is no such time: the server would refuse the whole NACK. */
function span(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms >= 0 && ms <= Number.MAX_SAFE_INTEGER ? Math.ceil(ms) : undefined;
}

function shortened(message: string): string | undefined {
  return message.slice(0, ERROR_LENGTH) || undefined;
}
