/** The adapter for ioredis. */

import { once } from 'node:events';

import { connected, type Link, type Server, type ServerNode } from './adapter.js';
import { slot } from './routing.js';
import type { Word } from './words.js';

/** The part of `Redis` of ioredis that is used. The words are in an array, because a call in JavaScript takes a limited number of arguments. */
interface Redis {
  callBuffer(command: Word, words: readonly Word[]): Promise<unknown>;
  duplicate(override: object): Redis;
  connect(): Promise<void>;
  disconnect(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  status: string;
  reconnectTimeout?: NodeJS.Timeout | null;
  options: { host?: string; port?: number; keyPrefix?: string };
}

/** The methods of `Cluster` of ioredis that are needed. */
interface Cluster {
  isCluster: true;
  status: string;
  slots: string[][];
  callBuffer(command: Word, words: readonly Word[]): Promise<unknown>;
  nodes(role: 'master'): Redis[];
  refreshSlotsCache(done: (error?: Error | null) => void): void;
  once(event: 'ready', listener: () => void): unknown;
  options?: { keyPrefix?: string; redisOptions?: { keyPrefix?: string } };
}

export function isIoredis(client: object): client is Redis | Cluster {
  return 'callBuffer' in client;
}

export function ioredisServer(client: Redis | Cluster): Server {
  return 'isCluster' in client && client.isCluster ? new ClusterServer(client) : new SingleServer(client as Redis);
}

/** A separate connection ends when it is lost, and repeats nothing. The caller knows what may be repeated. */
const OWN = {
  lazyConnect: true,
  // A silent server does not end its side. The socket would keep the process alive for longer.
  disconnectTimeout: 100,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: false,
  maxRetriesPerRequest: null,
  retryStrategy: () => null,
  reconnectOnError: null,
  readOnly: false,
};

async function linkTo(redis: Redis, signal: AbortSignal): Promise<Link> {
  const own = redis.duplicate(OWN);
  // The error of the command has the same reason. Without a listener, ioredis prints it.
  own.on('error', () => {});
  await connected(() => own.connect(), () => own.disconnect(), signal);
  hasten(redis);
  return {
    send: ([command, ...words]) => own.callBuffer(command!, words),
    close: () => own.disconnect(),
  };
}

/**
 * Lets a client connect again at once, because its server is back. By itself it may wait for seconds, and acks and heartbeats
 * would come after the leases.
 */
function hasten(redis: Redis): void {
  if (redis.status !== 'reconnecting') return;
  // Nothing else ends this timer, which would connect a client that has been closed meanwhile.
  clearTimeout(redis.reconnectTimeout ?? undefined);
  redis.reconnectTimeout = null;
  redis.connect().catch(() => {});
}

class SingleServer implements Server, ServerNode {
  readonly name = '';
  readonly prefix: string;

  constructor(private readonly redis: Redis) {
    this.prefix = String(redis.options.keyPrefix ?? '');
  }

  send([command, ...words]: readonly Word[]): Promise<unknown> {
    return this.redis.callBuffer(command!, words);
  }

  link(signal: AbortSignal): Promise<Link> {
    return linkTo(this.redis, signal);
  }

  async nodeOf(): Promise<ServerNode> {
    return this;
  }

  async nodes(): Promise<ServerNode[]> {
    return [this];
  }

  async refresh(): Promise<void> {}
}

class ClusterServer implements Server {
  readonly prefix: string;

  constructor(private readonly cluster: Cluster) {
    const { keyPrefix, redisOptions } = cluster.options ?? {};
    this.prefix = String(keyPrefix ?? redisOptions?.keyPrefix ?? '');
  }

  async send([command, ...words]: readonly Word[], key: string): Promise<unknown> {
    const owner = this.#owner(key);
    if (owner) {
      try {
        return await owner.callBuffer(command!, words);
      } catch (error) {
        // The command was not done. The cluster's own routing follows the redirection, and learns from it.
        if (!/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/.test((error as Error).message)) throw error;
      }
    }
    return this.cluster.callBuffer(command!, words);
  }

  async nodeOf(key: string): Promise<ServerNode> {
    await this.#ready();
    return node(this.#owner(key) ?? this.cluster.nodes('master')[0]!);
  }

  async nodes(): Promise<ServerNode[]> {
    await this.#ready();
    // A former primary, or one whose slots have all moved away, stays in the list for a while.
    const owners = new Set(this.cluster.slots.map((keys) => keys?.[0]));
    return this.cluster
      .nodes('master')
      .filter((redis) => owners.has(address(redis)))
      .map(node);
  }

  async refresh(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
    });
  }

  async #ready(): Promise<void> {
    if (this.cluster.status !== 'ready') await once(this.cluster as never, 'ready');
  }

  /** ioredis does not know where the key of a module's command is, and would ask a random node. */
  #owner(key: string): Redis | undefined {
    const owner = this.cluster.slots[slot(key)]?.[0];
    return owner === undefined ? undefined : this.cluster.nodes('master').find((redis) => address(redis) === owner);
  }
}

function address(redis: Redis): string {
  return `${redis.options.host}:${redis.options.port}`;
}

function node(redis: Redis): ServerNode {
  return { name: address(redis), link: (signal) => linkTo(redis, signal) };
}
