/** Workers of BullMQ on dq that are closed while the server accepts connections and answers nothing. */

import assert from 'node:assert/strict';
import test, { describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull, connection, newBullName } from './bull.mjs';
import { LIBRARIES, Proxy, close, until } from './setup.mjs';

/** How a worker is connected: by options, or by a client of the application. */
const CONNECTIONS = {
  'its own client': async () => undefined,
  'a client of ioredis': async (url) => {
    const client = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    return client.on('error', () => {});
  },
  'a client of node-redis': LIBRARIES['node-redis, RESP3'],
};

/** Runs a worker at a server until it is silent, and closes it. Returns the queue, which has a connection of its own. */
async function silenced(connect, { job, options, force = false, closed }) {
  const proxy = await Proxy.start();
  const client = await connect(proxy.url);
  const name = newBullName();
  const queue = new Queue(name, { connection }, createDqBackend());
  const to = { host: '127.0.0.1', port: Number(new URL(proxy.url).port) };
  let begun = false;
  let ended;
  const gate = new Promise((resolve) => (ended = resolve));
  const processor = async () => {
    begun = true;
    await gate;
  };
  const worker = new Worker(name, processor, { connection: to, ...options }, createDqBackend({ connection: client }));
  worker.on('error', () => {});
  try {
    await worker.waitUntilReady();
    if (job) await queue.add('a', {}, { jobId: job });
    await (job ? until(() => begun) : sleep(200));
    proxy.silence();
    if (!force) ended();
    const late = sleep(20_000, 'late', { ref: false });
    assert.notEqual(await Promise.race([worker.close(force), late]), 'late');
    ended();
    await closed?.(queue);
  } finally {
    await queue.close();
    if (client) await close(client);
    proxy.close();
  }
}

// Each mostly waits, so they run beside each other.
describe('a worker of a silent server', { concurrency: 8 }, () => {
  for (const [how, connect] of Object.entries(CONNECTIONS)) {
    test(`${how}: one without a job is closed`, () => silenced(connect, {}));
    test(`${how}: one with a job is closed when the lock of that has ended, and the job is not called failed`, () =>
      silenced(connect, {
        job: 'one',
        options: { lockDuration: 1500 },
        closed: async (queue) => {
          await until(async () => (await (await queue.getJob('one')).getState()) === 'waiting');
          const { attemptsMade, failedReason } = await queue.getJob('one');
          assert.deepEqual([attemptsMade, failedReason], [0, undefined]);
        },
      }));
    test(`${how}: one with a job is closed by force at once`, () => silenced(connect, { job: 'one', options: { lockDuration: 60_000 }, force: true }));
  }
});

test('a worker that has no connection yet is closed while the server is silent', async () => {
  const proxy = await Proxy.start();
  proxy.silence();
  const to = { host: '127.0.0.1', port: Number(new URL(proxy.url).port) };
  const worker = new Worker(newBullName(), async () => {}, { connection: to }, createDqBackend());
  worker.on('error', () => {});
  await sleep(100);
  const late = sleep(20_000, 'late', { ref: false });
  assert.notEqual(await Promise.race([worker.close(), late]), 'late');
  proxy.close();
});

bull('a worker that has paused and goes on takes jobs again', async ({ queue, worker }) => {
  const done = [];
  const one = worker(async ({ data }) => void done.push(data));
  for (const n of [1, 2, 3]) {
    await queue.add('a', n);
    await until(() => done.length === n);
    await one.pause();
    one.resume();
  }
  assert.deepEqual(done, [1, 2, 3]);
});

bull('closing twice, and by force behind that, is closing once', async ({ queue, worker }) => {
  const one = worker(async () => {});
  await queue.add('a', {});
  await until(async () => (await queue.getCompletedCount()) === 1);
  await Promise.all([one.close(), one.close(), one.close(true)]);
  await one.close();
  await Promise.all([queue.close(), queue.close()]);
});

bull('a job that a worker closed by force leaves comes back when its lock ends', async ({ queue, worker }) => {
  let begun = false;
  const one = worker(async () => {
    begun = true;
    await sleep(60_000, undefined, { ref: false });
  }, { lockDuration: 300 });
  await queue.add('a', {});
  await until(() => begun);
  await one.close(true);
  worker(async () => {});
  await until(async () => (await queue.getCompletedCount()) === 1);
});
