/** Workers that stop while the server is gone or hangs. */

import assert from 'node:assert/strict';
import test, { describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Family, Queue, Worker } from 'dq-queue';
import { Redis } from 'ioredis';
import { close, LIBRARIES, newName, Proxy, until, url } from './setup.mjs';

const failing = (client) => client.on('error', () => {});
const CLIENTS = {
  'ioredis that keeps commands for ever': async (to) => failing(new Redis(to, { maxRetriesPerRequest: null })),
  'ioredis that keeps commands for 20 tries': async (to) => failing(new Redis(to, { maxRetriesPerRequest: 20 })),
  'node-redis that connects again': LIBRARIES['node-redis, RESP2'],
};
const ENDS = { gone: (proxy) => proxy.close(), silent: (proxy) => proxy.silence() };
const SOURCES = { queue: (client, name) => new Queue(client, name), family: (client, name) => new Family(client, name, 1) };

/**
 * The grace of the workers, and the longest time of `stop`: the grace, two seconds, and some time for a busy machine.
 */
const GRACE = 1000;
const BOUND = GRACE + 2000 + 500;

/** Runs a worker with one message in its handler until the server goes, and returns the ms from `stop` to the end of `run`. */
async function stopped({ connect, end, source, handle, options }) {
  const proxy = await Proxy.start();
  const [client, direct] = [await connect(proxy.url), await LIBRARIES['ioredis, RESP3'](url)];
  try {
    const from = source(client, newName());
    await source(direct, from.key ?? from.name).send('x');
    let begun = false;
    const worker = new Worker(from, async (...words) => {
      begun = true;
      return handle(...words);
    }, { grace: GRACE, lease: 30_000, ...options });
    worker.on('warning', () => {});
    const running = worker.run();
    await until(() => begun);
    end(proxy);
    const since = performance.now();
    worker.stop();
    await Promise.race([running, sleep(BOUND * 3)]);
    return performance.now() - since;
  } finally {
    proxy.close();
    for (const one of [client, direct]) await close(one);
  }
}

// Each test mostly waits, so the tests run in parallel.
describe('a worker stops in time', { concurrency: 8 }, () => {
  for (const [library, connect] of Object.entries(CLIENTS)) {
    for (const [how, end] of Object.entries(ENDS)) {
      for (const [kind, source] of Object.entries(SOURCES)) {
        const name = `${library}: a worker of a ${kind} stops in time although the server is ${how}`;
        const both = { connect, end, source };
        test(`${name} and its last ack is not answered`, async () => {
          const took = await stopped({ ...both, handle: () => sleep(300) });
          assert.ok(took < BOUND, `${took} ms`);
        });
        test(`${name} and a fetch waits at it`, async () => {
          const took = await stopped({ ...both, handle: () => sleep(300), options: { concurrency: 2, block: 60_000 } });
          assert.ok(took < BOUND, `${took} ms`);
        });
        test(`${name} and what is left cannot be given back`, async () => {
          const took = await stopped({ ...both, handle: () => sleep(GRACE * 2) });
          assert.ok(took < BOUND, `${took} ms`);
        });
      }
    }
  }
});

test('a worker that stops does not leave a process waiting for a connection to a silent server', async () => {
  const proxy = await Proxy.start();
  const client = await CLIENTS['ioredis that keeps commands for ever'](proxy.url);
  const worker = new Worker(new Queue(client, newName()), () => {}, { grace: 0 });
  worker.on('warning', () => {});
  await client.ping();
  proxy.silence();
  // The worker is connecting: the greeting is not answered.
  const running = worker.run();
  await sleep(100);
  worker.stop();
  const since = performance.now();
  await running;
  assert.ok(performance.now() - since < 2500);
  client.disconnect();
  proxy.close();
});

test('a wait at a living server that is longer than grace ends with the worker, and takes no message', async () => {
  const client = await LIBRARIES['ioredis, RESP3'](url);
  const queue = new Queue(client, newName());
  await queue.create({});
  const worker = new Worker(queue, () => {}, { grace: 0, block: 60_000 });
  const running = worker.run();
  await until(async () => (await queue.info()).blockedClients === 1);
  worker.stop();
  await running;
  await queue.send('x', { id: 'a' });
  assert.deepEqual([(await queue.get('a')).state, (await queue.get('a')).attempt], ['ready', 0]);
  client.disconnect();
});
