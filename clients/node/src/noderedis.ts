/** The adapter for node-redis. */

import { ConnectionError } from './errors.js';
import { connected, type Link, type Server, type ServerNode } from './adapter.js';
import { slot } from './routing.js';
import type { Word } from './words.js';

/** The methods of `createClient` of node-redis that are needed. */
interface Client {
  sendCommand(words: readonly Word[], options: object): Promise<unknown>;
  duplicate(override: object): Client;
  connect(): Promise<unknown>;
  destroy?(): void;
  /** node-redis 4 has it in place of `destroy`. */
  disconnect?(): Promise<void>;
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

/** The methods of `createCluster` of node-redis that are needed. */
interface Cluster {
  sendCommand(key: string, readOnly: boolean, words: readonly Word[], options: object): Promise<unknown>;
  nodeClient(node: Master): Promise<Client> | Client;
  slots: Shard[];
  masters: Master[];
  _slots: { rediscover(startWith?: Client): Promise<void> };
}

export function isNodeRedis(client: object): client is Client | Cluster {
  return 'sendCommand' in client && ('duplicate' in client || 'nodeClient' in client);
}

export function nodeRedisServer(client: Client | Cluster): Server {
  if (!('nodeClient' in client)) return new SingleServer(client);
  // Older releases hide how to find out that slots have moved.
  if (!client._slots) throw new TypeError('a cluster needs node-redis 5.9 or newer, or ioredis');
  return new ClusterServer(client);
}

/**
 * Strings come as bytes, and maps as Map, whatever the client is set to. The numbers are the types' bytes of RESP, and
 * node-redis 4 has another name for it.
 */
const AS_BYTES = { typeMapping: { [0x24]: Buffer, [0x25]: Map }, returnBuffers: true };

/** Commands without a key. node-redis 6 sends them to any node, even if a key is given beside them. */
const KEYLESS = new Set(['CLIENT', 'SCAN']);

/** A connection of one's own ends when it is lost. The caller knows what may be repeated. */
async function linkTo(client: Client, signal: AbortSignal): Promise<Link> {
  const own = client.duplicate({
    socket: { ...client.options?.socket, reconnectStrategy: false, socketTimeout: undefined },
    pingInterval: undefined,
  });
  // The error of the command has the same reason. Without a listener, it would end the process.
  own.on('error', () => {});
  // A client that has lost its connection is closed, and node-redis 5 throws if it is closed once more.
  const close = () => {
    if (!own.isOpen) return;
    if (own.destroy) own.destroy();
    else own.disconnect!().catch(() => {});
  };
  await connected(() => own.connect(), close, signal);
  return { send: (words) => own.sendCommand(words, AS_BYTES), close };
}

class SingleServer implements Server, ServerNode {
  readonly name = '';
  readonly prefix = '';

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
  readonly prefix = '';

  constructor(private readonly cluster: Cluster) {}

  async send(words: readonly Word[], key: string): Promise<unknown> {
    if (!KEYLESS.has(String(words[0]))) return this.cluster.sendCommand(key, false, words, AS_BYTES);
    const client = await this.cluster.nodeClient(this.#master(key));
    return client.sendCommand(words, AS_BYTES);
  }

  async nodeOf(key: string): Promise<ServerNode> {
    return this.#node(this.#master(key));
  }

  #master(key: string): Master {
    const master = this.cluster.slots[slot(key)]?.master ?? this.cluster.masters[0];
    // There is no primary while the client asks the cluster again.
    if (!master) throw new ConnectionError('no node of the cluster is known');
    return master;
  }

  async nodes(): Promise<ServerNode[]> {
    return this.cluster.masters.map((master) => this.#node(master));
  }

  async refresh(): Promise<void> {
    const [master] = this.cluster.masters;
    // node-redis 5 needs the node that it asks first.
    await this.cluster._slots.rediscover(master && (await this.cluster.nodeClient(master)));
  }

  #node(master: Master): ServerNode {
    return { name: master.address, link: async (signal) => linkTo(await this.cluster.nodeClient(master), signal) };
  }
}
