/** The parts that the tests share. DQ_TEST_URL names a server with the module, DQ_TEST_CLUSTER nodes of a cluster. */

import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Family, Queue } from 'dq-queue';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';

export const url = process.env.DQ_TEST_URL ?? 'redis://127.0.0.1:6379';

const failing = (client) => client.on('error', () => {});
const nodeRedis = (RESP) => async (to) => {
  const client = failing(createClient({ url: to, RESP, socket: { reconnectStrategy: 20 } }));
  await client.connect();
  return client;
};
const ioredis = (options) => async (to) => failing(new Redis(to, { retryStrategy: () => 20, ...options }));

/** Each library with each protocol. A function connects to a URL. */
export const LIBRARIES = {
  'ioredis, RESP2': ioredis({ protocol: 2 }),
  'ioredis, RESP3': ioredis({ protocol: 3 }),
  'ioredis, RESP3 mapped': ioredis({ protocol: 3, replyMapping: 'resp3' }),
  'node-redis, RESP2': nodeRedis(2),
  'node-redis, RESP3': nodeRedis(3),
};

const nodes = process.env.DQ_TEST_CLUSTER?.split(',').map((address) => address.split(':'));

/** Each library with each protocol, for clusters. */
export const CLUSTERS = {
  'ioredis, RESP2': async () => new Cluster(nodes.map(([host, port]) => ({ host, port: Number(port) })), { redisOptions: { protocol: 2 } }),
  'ioredis, RESP3': async () => new Cluster(nodes.map(([host, port]) => ({ host, port: Number(port) }))),
  'node-redis, RESP2': () => nodeRedisCluster({ RESP: 2 }),
  'node-redis, RESP3': () => nodeRedisCluster({}),
};

// A cluster of an older node-redis is refused.
if (!('_slots' in createCluster({ rootNodes: [{ url }] }))) for (const name of Object.keys(CLUSTERS)) if (name.startsWith('node-redis')) delete CLUSTERS[name];

async function nodeRedisCluster(options) {
  const cluster = createCluster({ rootNodes: nodes.map((address) => ({ url: `redis://${address.join(':')}` })), ...options });
  await cluster.connect();
  return cluster;
}

export async function close(client) {
  if (client.destroy && !client.callBuffer) client.destroy();
  // ioredis, and node-redis 4, whose client may be closed already.
  else await Promise.resolve(client.disconnect()).catch(() => {});
}

let made = 0;

/** A name that no other test has. */
export const newName = () => `node:${process.pid}:${++made}`;

/** Defines a test for each library. It gets a client, a queue, and a function that makes another client. */
export function each(name, run, to = url) {
  for (const [library, connect] of Object.entries(LIBRARIES)) {
    test(`${library}: ${name}`, async () => {
      const client = await connect(to);
      const queue = new Queue(client, newName());
      try {
        await run({ client, queue, connect });
      } finally {
        queue.close();
        await close(client);
      }
    });
  }
}

/** Defines a test for each library with a cluster. It gets a family. */
export function eachCluster(name, run) {
  for (const [library, connect] of Object.entries(CLUSTERS)) {
    test(`${library}, cluster: ${name}`, { skip: nodes ? false : 'DQ_TEST_CLUSTER names no cluster' }, async () => {
      const client = await connect();
      const family = new Family(client, newName(), 16);
      try {
        await run({ family });
      } finally {
        family.close();
        await close(client);
      }
    });
  }
}

/** Returns when the condition holds. */
export async function until(condition) {
  const end = performance.now() + 20_000;
  for (;;) {
    const met = await condition();
    if (met) return met;
    assert.ok(performance.now() < end, `did not come about: ${condition}`);
    await sleep(5);
  }
}

/** Runs a worker while `during` does its work. */
export async function working(worker, during) {
  const running = worker.run();
  // An early end must be seen, and no error may go unhandled meanwhile.
  const ended = running.then(
    () => {},
    (error) => {
      throw error;
    },
  );
  ended.catch(() => {});
  try {
    await Promise.race([during(), ended]);
  } finally {
    worker.stop();
    await running;
  }
}

/** A TCP proxy that drops connections, before a command or before its reply has come through. */
export class Proxy {
  #server;
  #word = '';
  #times = 0;
  #isReply = true;
  #refused = 0;
  #sockets = new Set();
  #silent = false;
  lost = 0;

  static async start() {
    const proxy = new Proxy();
    const { hostname, port } = new URL(url);
    proxy.#server = net.createServer((near) => {
      const far = net.connect(Number(port), hostname);
      let losing = false;
      let isNew = true;
      const end = () => {
        if (proxy.#silent) return;
        near.destroy();
        far.destroy();
      };
      near.on('data', (data) => {
        if (proxy.#times > 0 && data.includes(proxy.#word)) {
          proxy.#times--;
          losing = true;
          if (!proxy.#isReply) {
            proxy.lost++;
            return end();
          }
        }
        if (!proxy.#silent) far.write(data);
      });
      far.on('data', (data) => {
        if (proxy.#silent) return;
        if (isNew && proxy.#refused > 0) {
          proxy.#refused--;
          if (losing) proxy.lost++;
          return end();
        }
        isNew = false;
        if (!losing) return near.write(data);
        proxy.lost++;
        end();
      });
      for (const socket of [near, far]) {
        proxy.#sockets.add(socket);
        socket.on('error', end).on('close', end).on('close', () => proxy.#sockets.delete(socket));
      }
    });
    await new Promise((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url() {
    return `redis://127.0.0.1:${this.#server.address().port}`;
  }

  /** The next `times` replies to commands with this word are lost. */
  lose(word, times = 1) {
    this.#word = word;
    this.#times = times;
    this.#isReply = true;
  }

  /** The next command with this word does not come to the server. */
  drop(word) {
    this.lose(word);
    this.#isReply = false;
  }

  /** The next new connection breaks before the first reply, while the client greets the server. */
  refuse() {
    this.#refused = 1;
  }

  /** Breaks all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Accepts connections and answers nothing from now on, as a server that hangs. */
  silence() {
    this.#silent = true;
  }

  close() {
    this.#silent = false;
    this.cut();
    this.#server.close();
  }
}
