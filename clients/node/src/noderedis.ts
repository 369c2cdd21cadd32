/** The adapter for node-redis. */

import { connected, type Link, type Server, type ServerNode } from './connection.js';
import { slot } from './routing.js';
import type { Word } from './words.js';

/** What is needed of `createClient` of node-redis. */
interface Client {
  sendCommand(words: readonly Word[], options: object): Promise<unknown>;
  duplicate(override: object): Client;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  options?: { socket?: object };
  isOpen: boolean;
}

interface Shard {
  master: Master;
}

interface Master {
  address: string;
}

/** What is needed of `createCluster` of node-redis. */
interface Cluster {
  sendCommand(key: string, readOnly: boolean, words: readonly Word[], options: object): Promise<unknown>;
  nodeClient(node: Master): Promise<Client> | Client;
  slots: Shard[];
  masters: Master[];
  _slots: { rediscover(): Promise<void> };
}

export function isNodeRedis(client: object): client is Client | Cluster {
  return 'sendCommand' in client && ('duplicate' in client || 'nodeClient' in client);
}

export function nodeRedisServer(client: Client | Cluster): Server {
  return 'nodeClient' in client ? new ClusterServer(client) : new SingleServer(client);
}

/** Strings come as bytes, and maps as Map, whatever the client is set to. The numbers are the types' bytes of RESP. */
const AS_BYTES = { typeMapping: { [0x24]: Buffer, [0x25]: Map } };

/** A connection of one's own ends when it is lost. The caller knows what may be repeated. */
async function linkTo(client: Client, signal: AbortSignal): Promise<Link> {
  const own = client.duplicate({
    socket: { ...client.options?.socket, reconnectStrategy: false, socketTimeout: undefined },
    pingInterval: undefined,
  });
  // The error of the command says the same. Without a listener, it would end the process.
  own.on('error', () => {});
  // A client that has lost its connection is closed, and node-redis 5 throws if it is closed once more.
  const close = () => {
    if (own.isOpen) own.destroy();
  };
  await connected(() => own.connect(), close, signal);
  return { send: (words) => own.sendCommand(words, AS_BYTES), close };
}

class SingleServer implements Server, ServerNode {
  readonly name = '';

  constructor(private readonly client: Client) {}

  send(words: readonly Word[]): Promise<unknown> {
    return this.client.sendCommand(words, AS_BYTES);
  }

  link(signal: AbortSignal): Promise<Link> {
    return linkTo(this.client, signal);
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
  constructor(private readonly cluster: Cluster) {}

  send(words: readonly Word[], key: string): Promise<unknown> {
    return this.cluster.sendCommand(key, false, words, AS_BYTES);
  }

  async nodeOf(key: string): Promise<ServerNode> {
    const shard = this.cluster.slots[slot(key)];
    return this.#node(shard?.master ?? this.cluster.masters[0]!);
  }

  async nodes(): Promise<ServerNode[]> {
    return this.cluster.masters.map((master) => this.#node(master));
  }

  refresh(): Promise<void> {
    return this.cluster._slots.rediscover();
  }

  #node(master: Master): ServerNode {
    return { name: master.address, link: async (signal) => linkTo(await this.cluster.nodeClient(master), signal) };
  }
}
