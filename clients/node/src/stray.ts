/**
 * Errors that escape from a handler: a rejection that nobody awaits, an exception in a timer or in a listener.
 *
 * By default such an error ends the process, with everything that other handlers do in it. Node tells from which handler
 * it has come, so it is the failure of that message alone.
 */

import { AsyncLocalStorage } from 'node:async_hooks';

/** The caller of a handler. It gets the errors that the handler's code throws later. */
export interface Caller {
  caught(error: unknown): void;
}

const callers = new AsyncLocalStorage<Caller>();
let watching = 0;

/** Calls a function. Errors of everything that it sets in motion are those of the caller. */
export function callFor<T>(caller: Caller, call: () => T): T {
  return callers.run(caller, call);
}

/** Begins to watch for such errors. Returns the function that ends this. */
export function watchStrays(): () => void {
  if (watching++ === 0) process.on('uncaughtException', onUncaught);
  let over = false;
  return () => {
    if (!over && --watching === 0) process.off('uncaughtException', onUncaught);
    over = true;
  };
}

/** Node calls this function for exceptions, and for rejections if the program has no listener for these. */
function onUncaught(error: unknown): void {
  const caller = callers.getStore();
  if (caller) return caller.caught(error);
  if (process.listenerCount('uncaughtException') > 1) return;
  // No handler's. It has the effect that it has without this listener.
  process.off('uncaughtException', onUncaught);
  process.nextTick(() => {
    throw error;
  });
}
