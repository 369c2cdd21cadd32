/** The confirmation of commands for a queue with `durable`, by WAITAOF or WAIT in the same pipeline. */

import { type Changing, insist } from './changing.js';
import type { Server, ServerNode } from './adapter.js';
import { Connection } from './connection.js';
import { CommandError, isTransient, NotConfirmedError } from './errors.js';
import { list } from './replies.js';
import type { Word } from './words.js';

/**
 * The way in which sent and settled messages are confirmed. The default: the log of the server is synced to its disk
 * (WAITAOF).
 */
export interface DurableOptions {
  /** How many replicas must have it too, in their logs, synced. The default is 0. */
  replicas?: number;
  /**
   * Whether it is enough that the replicas have the command in memory, and nothing needs to be synced: WAIT, which all
   * servers have. WAITAOF needs Redis 7.2 or Valkey.
   */
  inMemory?: boolean;
  /** Milliseconds that one confirmation may take. The default is 5,000. */
  timeout?: number;
}

/** A command that waits for its confirmation. */
interface Job {
  words: readonly Word[];
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

/** The waiting calls for a node, and the number of connections that are being made to it. */
interface Place {
  line: Job[];
  idle: Connection[];
  underWay: number;
}

/** Connections to a node. While one waits for a confirmation, what comes meanwhile goes together over another one. */
const CONNECTIONS = 2;
/** At most this many commands go together. */
const TOGETHER = 1000;

/** Has the commands of a queue confirmed. Commands of the same time share one confirmation. */
export class Durably implements Changing {
  readonly #places = new Map<string, Place>();
  readonly #replicas: number;
  readonly #inMemory: boolean;
  readonly #timeout: number;
  #closed = false;

  constructor(
    private readonly server: Server,
    private readonly key: string,
    private readonly patience: number,
    { replicas = 0, inMemory = false, timeout = 5000 }: DurableOptions,
  ) {
    if (inMemory && replicas < 1) throw new TypeError('durable with inMemory needs at least 1 of replicas');
    this.#replicas = replicas;
    this.#inMemory = inMemory;
    this.#timeout = timeout;
  }

  /** Runs a command once. Throws NotConfirmedError if it was run, and is not confirmed. */
  async call(words: readonly Word[]): Promise<unknown> {
    try {
      return await this.#ride(await this.server.nodeOf(this.key), words);
    } catch (error) {
      if (!(error instanceof CommandError && error.code === 'MOVED')) throw error;
      await this.server.refresh();
      return this.#ride(await this.server.nodeOf(this.key), words);
    }
  }

  /** Runs a DQ.SEND with an id, and repeats it until it is confirmed. Nothing is added twice by that. */
  async send(words: readonly Word[], id: string): Promise<unknown> {
    let added: unknown = null;
    const again = (error: unknown) => {
      if (!(error instanceof NotConfirmedError)) return isTransient(error);
      added = error.reply ?? added;
      return !error.cause;
    };
    try {
      return (await insist(this.patience, again, () => this.call(words))) ?? added;
    } catch (error) {
      if (error instanceof NotConfirmedError) {
        error.id = id;
        // A repetition finds that the id is taken, by the first try.
        error.reply ??= added;
      }
      throw error;
    }
  }

  /**
   * Runs a command about receipts, and repeats it while there is no reply. `isDone` says whether a reply means that all was
   * done: if a repetition finds receipts stale, the first try may have been done, and lost again.
   */
  async settle(words: readonly Word[], isDone: (reply: unknown) => boolean): Promise<unknown> {
    let isRepeated = false;
    const reply = await insist(this.patience, (error) => (isRepeated = isTransient(error)), () => this.call(words));
    if (isRepeated && !isDone(reply)) {
      const why = 'the connection was lost, and then receipts were stale: the first try was done, or their leases are over';
      throw new NotConfirmedError(why, { reply });
    }
    return reply;
  }

  close(): void {
    this.#closed = true;
    for (const { idle } of this.#places.values()) for (const connection of idle.splice(0)) connection.close();
  }

  #ride(node: ServerNode, words: readonly Word[]): Promise<unknown> {
    let place = this.#places.get(node.name);
    if (!place) this.#places.set(node.name, (place = { line: [], idle: [], underWay: 0 }));
    const { line } = place;
    const riding = new Promise<unknown>((resolve, reject) => line.push({ words, resolve, reject }));
    if (place.underWay < CONNECTIONS) void this.#carry(node, place);
    return riding;
  }

  /** Runs the waiting commands, many at a time, until none waits. */
  async #carry(node: ServerNode, place: Place): Promise<void> {
    place.underWay++;
    // Requests of the same turn of the event loop go together.
    await Promise.resolve();
    let connection = place.idle.pop();
    while (place.line.length) {
      const jobs = place.line.splice(0, TOGETHER);
      try {
        connection = connection?.usable ? connection : await Connection.to(node);
        await this.#run(connection, jobs);
      } catch (error) {
        for (const { reject } of jobs) reject(error as Error);
      }
    }
    place.underWay--;
    if (this.#closed) connection?.close();
    else if (connection?.usable) place.idle.push(connection);
  }

  async #run(connection: Connection, jobs: readonly Job[]): Promise<void> {
    const confirming = this.#inMemory ? ['WAIT'] : ['WAITAOF', '1'];
    const commands = [...jobs.map(({ words }) => words), [...confirming, String(this.#replicas), String(this.#timeout)]];
    const replies = await connection.callAll(commands, this.#timeout);
    const confirmation = replies.pop();
    for (const [n, { resolve, reject }] of jobs.entries()) {
      const reply = replies[n];
      const error = reply instanceof Error ? reply : this.#missing(reply, confirmation);
      if (error) reject(error);
      else resolve(reply);
    }
  }

  /** Returns the missing part of a confirmation, if there is one. */
  #missing(reply: unknown, confirmation: unknown): NotConfirmedError | undefined {
    if (confirmation instanceof CommandError) {
      const hint = confirmation.message.includes('unknown command')
        ? ' (WAITAOF needs Redis 7.2 or Valkey. With inMemory, replicas confirm on any server)'
        : '';
      return new NotConfirmedError(confirmation.message + hint, { reply, cause: confirmation });
    }
    const [synced, replicas] = this.#inMemory ? [0, Number(confirmation)] : list(confirmation).map(Number);
    if ((this.#inMemory || synced) && replicas! >= this.#replicas) return undefined;
    const why = `after ${this.#timeout} ms its log was ${synced ? '' : 'not '}synced, and ${replicas} of ${this.#replicas} replicas had it`;
    return new NotConfirmedError(why, { reply, synced: synced === 1, replicas });
  }
}
