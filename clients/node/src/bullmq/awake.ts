/** Waits for replies without sleep. */

import { availableParallelism } from 'node:os';

/** The real ones, from before a test replaces them. */
const { setImmediate: soon } = globalThis;
const now = performance.now.bind(performance);

/** Milliseconds within which a reply is one of a server nearby. */
const NEARBY = 0.5;

/** On a single processor the server could not run meanwhile. */
const IS_ALONE = availableParallelism() === 1;

/**
 * Keeps the event loop turning until a reply has come, instead of letting it sleep. On a virtual machine, waking a processor
 * that sleeps takes longer than the command itself, and the server pays for it, too: a job of a worker that runs one at a
 * time takes a third less time, and the process needs no more CPU than for sleeping and waking.
 *
 * It does so for half a millisecond at most, and only while the replies come within that time. Other callbacks of the
 * process run as ever.
 */
export class Awake {
  #isNearby = false;

  /** Returns the same promise. */
  until<T>(reply: Promise<T>): Promise<T> {
    const begun = now();
    let waits = true;
    const ended = () => {
      waits = false;
      this.#isNearby = now() - begun < NEARBY;
    };
    reply.then(ended, ended);
    const turn = () => {
      if (waits && now() - begun < NEARBY) soon(turn);
    };
    if (this.#isNearby && !IS_ALONE) soon(turn);
    return reply;
  }
}
