/** Connections to a server or a cluster, whichever library makes them. */

import { translated } from './errors.js';
import { ioredisServer, isIoredis } from './ioredis.js';
import { isNodeRedis, nodeRedisServer } from './noderedis.js';
import type { Word } from './words.js';

/**
 * A client of ioredis (`Redis`, `Cluster`) or of node-redis (`createClient`, `createCluster`).
 *
 * Only the parts that are needed are named, so that no type of either library is needed.
 */
export type RedisClient = { callBuffer(command: string, ...words: never[]): unknown } | { sendCommand(...words: never[]): unknown };

/** A connection that the library has made for one caller, which may wait on it. */
export interface Link {
  send(words: readonly Word[]): Promise<unknown>;
  close(): void;
}

/** A primary of the cluster, or the one server. */
export interface ServerNode {
  /** What tells it from other nodes. */
  readonly name: string;
  /** Makes a connection of one's own to it. */
  link(): Promise<Link>;
}

/** What an adapter makes of a client. Errors are those of the library. */
export interface Server {
  /** Sends a command over the client's own connection, in a cluster to the node of `key`. */
  send(words: readonly Word[], key: string): Promise<unknown>;
  /** Returns the node that has the key. */
  nodeOf(key: string): Promise<ServerNode>;
  /** Returns all primaries. */
  nodes(): Promise<ServerNode[]>;
  /** Asks the cluster for its nodes and slots anew. */
  refresh(): Promise<void>;
}

/** Milliseconds after which a reply that should have come no longer counts as coming. */
const PATIENCE = 10_000;

/** A connection of one's own. It does not mend itself: after a lost connection, make another one. */
export class Connection {
  #broken = false;

  private constructor(private readonly link: Link) {}

  /** Connects to a node. Throws ConnectionError. */
  static async to(node: ServerNode): Promise<Connection> {
    try {
      return new Connection(await node.link());
    } catch (error) {
      throw translated(error);
    }
  }

  /** Whether it can still be used. */
  get usable(): boolean {
    return !this.#broken;
  }

  /** Sends a command that waits up to `block` ms at the server. A server that stays silent for longer is given up. */
  async call(words: readonly Word[], block = 0): Promise<unknown> {
    const timer = setTimeout(() => this.close(), block + PATIENCE);
    try {
      return await this.link.send(words);
    } catch (error) {
      const known = translated(error);
      if (known.name === 'ConnectionError') this.close();
      throw known;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    if (this.#broken) return;
    this.#broken = true;
    this.link.close();
  }
}

const servers = new WeakMap<object, Server>();

/** Returns the adapter of a client. Throws TypeError if it is of neither library. */
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
