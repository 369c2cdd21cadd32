/** Commands that outlive a lost connection. */

import { setTimeout as sleep } from 'node:timers/promises';

import { isTransient, pauses } from '../errors.js';

/** Repeats a command that may be repeated, until it has a reply or the backend is closed. */
export async function persist<T>(send: () => Promise<T>, closed: () => boolean): Promise<T> {
  let wait: Generator<number, never> | undefined;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!isTransient(error) || closed()) throw error;
      wait ??= pauses();
      await sleep(wait.next().value);
    }
  }
}
