/** The time of this process as the time of a queue, for tests that replace the timers of Node. */

/** The real timers, from before a test replaces them. */
const { setInterval: every, clearInterval: endEvery } = globalThis;

/** Milliseconds between two readings of the process's time. */
const PAUSE = 2;

/** Moves the manual clock of a queue to `Date.now()`. The queue is made at the time 0, so a test may begin at any time. */
export class ProcessClock {
  /** The time to which the queue was moved. It never goes back. */
  #moved = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly move: (to: number) => Promise<unknown>) {}

  /** Moves the queue. The command that is sent next finds it at its time. */
  sync(): void {
    const now = Date.now();
    if (now <= this.#moved) return;
    this.#moved = now;
    // Another backend may have moved the clock further.
    this.move(now).catch(() => {});
  }

  start(): void {
    this.#timer ??= every(() => this.sync(), PAUSE).unref();
  }

  stop(): void {
    endEvery(this.#timer);
    this.#timer = undefined;
  }
}
