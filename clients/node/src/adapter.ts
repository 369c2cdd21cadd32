/** The interface that an adapter offers for a client of a library: ioredis.ts and noderedis.ts are two adapters. */

import { unless } from './bounds.js';
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
  /** The name that tells this node from others. */
  readonly name: string;
  /**
   * Makes a separate connection to the node. If the signal is aborted first, it throws, and leaves no connection open.
   */
  link(signal: AbortSignal): Promise<Link>;
}

/** The interface that an adapter offers for a client. Errors are those of the library. */
export interface Server {
  /**
   * The prefix that the client puts before each key: `keyPrefix` of ioredis. It does so only for commands that it
   * knows.
   */
  readonly prefix: string;
  /** Sends a command over the client's own connection, in a cluster to the node of `key`. */
  send(words: readonly Word[], key: string): Promise<unknown>;
  /** Returns the node that has the key. */
  nodeOf(key: string): Promise<ServerNode>;
  /** Returns all primaries. */
  nodes(): Promise<ServerNode[]>;
  /** Asks the cluster for its nodes and slots anew. */
  refresh(): Promise<void>;
}

/** Makes a connection by the function that a library has for it, and closes it if the signal is aborted first. */
export async function connected(connect: () => Promise<unknown>, close: () => void, signal: AbortSignal): Promise<void> {
  try {
    await unless(signal, connect());
  } catch (error) {
    if (signal.aborted) close();
    throw error;
  }
}
