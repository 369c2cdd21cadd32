/** The loop in which a worker fetches the messages of one queue. */

import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

import { unless } from './bounds.js';
import type { Server } from './adapter.js';
import { Connection } from './connection.js';
import { CommandError, isTransient, pauses } from './errors.js';
import type { Handling } from './handling.js';
import { Message } from './message.js';
import { acks } from './receipts.js';
import { list } from './replies.js';
import type { Done, Settling } from './settling.js';
import type { Word } from './words.js';

/** The state that the loops of a worker share. */
export interface Crew {
  readonly server: Server;
  readonly handling: Handling;
  readonly settling: Settling;
  readonly lease: number;
  readonly block: number;
  readonly consumer: string;
  readonly stopping: AbortSignal;
  /** Aborted when a worker that stops can wait for its fetches no longer. */
  readonly cut: AbortSignal;
  /** Aborted when a worker that stops must end. */
  readonly end: AbortSignal;
  /** A new token for each new call. */
  token(): string;
  warn(error: Error): void;
  /** Stops the worker, whose `run` throws the error. */
  fail(error: unknown): void;
}

/** TOKEN allows no larger COUNT. */
export const MOST = 1000;

/** The options that all fetches of a worker have. */
export function common(crew: Crew, count: number): Word[] {
  return ['WITHMETA', 'COUNT', String(count), 'LEASE', String(crew.lease), 'CONSUMER', crew.consumer, 'TOKEN', crew.token()];
}

/** Waits, but not for longer than the worker runs. */
export async function pauseFor(ms: number, crew: Crew): Promise<void> {
  await sleep(ms, undefined, { signal: crew.stopping }).catch(() => {});
}

/** Fetches from a queue until the worker stops. Throws an error that will not pass. */
export async function fetchFromQueue(queue: string, crew: Crew): Promise<void> {
  const { handling, settling } = crew;
  let connection: Connection | undefined;
  let drained = true;

  const close = () => connection?.close();
  for (const signal of [crew.cut, crew.end]) signal.addEventListener('abort', close, { once: true });

  async function connect(until: AbortSignal): Promise<Connection> {
    return Connection.to(await unless(until, crew.server.nodeOf(queue)), until);
  }

  /**
   * Repeats a command until there is a reply. The token of the command makes this the lost reply. A worker that stops does so
   * once more without a wait: messages that a lost reply has leased must be given back.
   */
  async function insist(words: Word[], block: number): Promise<unknown> {
    for (const pause of pauses()) {
      const last = crew.stopping.aborted;
      try {
        if (!connection?.usable) connection = await connect(last ? crew.end : crew.cut);
        return await connection.call(last || !block ? words : [...words, 'BLOCK', String(block)], last ? 0 : block);
      } catch (error) {
        if (!isTransient(error)) throw error;
        crew.warn(error as Error);
        // Another server may have the queue now.
        connection?.close();
        if (last) throw error;
        await pauseFor(pause, crew);
        if (error instanceof CommandError) await unless(crew.cut, crew.server.refresh()).catch(crew.warn);
      }
    }
  }

  /** Whether the server has refused a fetch with its acks. They go out by themselves then, one by one. */
  let refused = false;
  try {
    while (!crew.stopping.aborted) {
      await handling.waitForRoom();
      // Handlers that end in the same turn of the event loop are acked together, and replaced together.
      if (handling.running) await turn();
      if (crew.stopping.aborted) break;
      const count = Math.min(handling.room, MOST);
      const done = refused ? [] : settling.take();
      // If the last reply was full, there is probably more. Otherwise wait, and let acks go their own way meanwhile.
      const block = !refused && (drained || !handling.running) ? crew.block : 0;
      if (block) settling.wait();
      const words = ['DQ.FETCH', queue, ...common(crew, count), ...withResults(done)];
      const asked = performance.now();
      let batch: Message[];
      try {
        batch = list(await insist(words, block)).map((one) => new Message(queue, one));
      } catch (error) {
        settling.restore(done);
        if (isTransient(error)) break;
        if (!done.length) throw error;
        refused = true;
        settling.wait();
        continue;
      }
      refused = false;
      settling.hold();
      drained = batch.length < count;
      if (crew.stopping.aborted) await settling.giveBack(batch);
      else handling.start(batch, asked);
    }
  } finally {
    settling.wait();
    for (const signal of [crew.cut, crew.end]) signal.removeEventListener('abort', close);
    close();
  }
}

function withResults(done: Done[]): Word[] {
  const results = done.flatMap(({ result }) => result ?? []);
  return acks(
    done.map(({ message }) => message),
    results,
  );
}
