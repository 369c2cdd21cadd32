/** Connections to a server or a cluster, whichever library makes them. */

import type { Link, RedisClient, Server, ServerNode } from './adapter.js';
import { CommandError, ConnectionError, translated } from './errors.js';
import { ioredisServer, isIoredis } from './ioredis.js';
import { isNodeRedis, nodeRedisServer } from './noderedis.js';
import type { Word } from './words.js';

/** Milliseconds after which a reply that should have come no longer counts as coming. */
const PATIENCE = 10_000;

/** Milliseconds from one look at the connection to the next. A timer for each command would cost 4 us of each. */
const WATCHING = 1_000;

/** A command whose reply has not come: until when (`performance.now`) a silent server may give it, and what fails it. */
interface Call {
  readonly deadline: number;
  lost(error: Error): void;
}

/** A connection of one's own. It does not mend itself: after a lost connection, make another one. */
export class Connection {
  #broken = false;
  readonly #calls = new Set<Call>();
  readonly #watching: NodeJS.Timeout;

  private constructor(private readonly link: Link) {
    this.#watching = setInterval(() => {
      const now = performance.now();
      if ([...this.#calls].some(({ deadline }) => now > deadline)) this.close();
    }, WATCHING).unref();
  }

  /**
   * Connects to a node. Throws ConnectionError, also when `cut` is aborted. A server that accepts connections and stays
   * silent is given up: the libraries bound the time to connect, but not the time to greet.
   */
  static async to(node: ServerNode, cut?: AbortSignal): Promise<Connection> {
    const giveUp = new AbortController();
    const timer = setTimeout(() => giveUp.abort(new ConnectionError('the server does not answer')), PATIENCE);
    const end = () => giveUp.abort(cut!.reason);
    if (cut?.aborted) end();
    cut?.addEventListener('abort', end, { once: true });
    try {
      return new Connection(await node.link(giveUp.signal));
    } catch (error) {
      throw translated(error);
    } finally {
      clearTimeout(timer);
      cut?.removeEventListener('abort', end);
    }
  }

  /** Whether it can still be used. */
  get usable(): boolean {
    return !this.#broken;
  }

  /** Sends a command that waits up to `block` ms at the server. A server that stays silent for longer is given up. */
  call(words: readonly Word[], block = 0): Promise<unknown> {
    return this.#answered(block, () => this.link.send(words));
  }

  /** Sends commands together, as `call` does one. Returns the reply to each, a CommandError where it is an error. */
  async callAll(commands: readonly (readonly Word[])[], block = 0): Promise<unknown[]> {
    const one = async (words: readonly Word[]) => {
      try {
        return await this.link.send(words);
      } catch (error) {
        const known = translated(error);
        if (known instanceof CommandError) return known;
        throw known;
      }
    };
    return this.#answered(block, () => Promise.all(commands.map(one)));
  }

  async #answered<T>(block: number, ask: () => Promise<T>): Promise<T> {
    const one: Call = { deadline: performance.now() + block + PATIENCE, lost: () => {} };
    this.#calls.add(one);
    try {
      // A library may need seconds to fail the commands of a connection that is closed while the server is silent.
      return await new Promise<T>((resolve, reject) => {
        one.lost = reject;
        ask().then(resolve, reject);
      });
    } catch (error) {
      const known = translated(error);
      if (known.name === 'ConnectionError') this.close();
      throw known;
    } finally {
      this.#calls.delete(one);
    }
  }

  close(): void {
    if (this.#broken) return;
    this.#broken = true;
    clearInterval(this.#watching);
    this.link.close();
    for (const { lost } of this.#calls) lost(new ConnectionError('the connection is closed'));
  }
}

const servers = new WeakMap<object, Server>();

/** Returns the adapter of a client. Throws TypeError if it is of neither library, or of a release that is too old. */
export function serverOf(client: RedisClient): Server {
  let server = servers.get(client);
  if (!server) {
    if (isIoredis(client)) server = ioredisServer(client);
    else if (isNodeRedis(client)) server = nodeRedisServer(client);
    else throw new TypeError('the client must be one of ioredis or node-redis');
    servers.set(client, server);
  }
  return server;
}

/** Sends a command over the client's own connection. Throws CommandError or ConnectionError. */
export async function call(server: Server, words: readonly Word[], key: string): Promise<unknown> {
  try {
    return await server.send(words, key);
  } catch (error) {
    throw translated(error);
  }
}
