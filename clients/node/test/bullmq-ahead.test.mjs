/** The jobs that a worker of BullMQ on dq takes ahead. */

import assert from 'node:assert/strict';

import { Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull } from './bull.mjs';
import { LIBRARIES, Proxy, close, until, url } from './setup.mjs';

const jobs = (count) => Array.from({ length: count }, (_, data) => ({ name: 'a', data }));

const fetchesAt = async (redis) => Number(/cmdstat_dq\.fetch:calls=(\d+)/i.exec(await redis.info('commandstats'))[1]);

bull('jobs that end together share the command that acks them and takes the next', async ({ queue, worker }) => {
  const redis = new Redis(url);
  const gates = [];
  await queue.addBulk(jobs(20));
  worker(() => new Promise((resolve) => gates.push(resolve)), { concurrency: 10 });
  await until(() => gates.length === 10);
  const before = await fetchesAt(redis);
  for (const open of gates.slice()) open();
  await until(() => gates.length === 20);
  const used = (await fetchesAt(redis)) - before;
  for (const open of gates) open();
  redis.disconnect();
  assert.equal(used, 1);
});

bull('a burst that comes to an idle worker is taken with a few commands', async ({ queue, worker }) => {
  const redis = new Redis(url);
  const fetches = () => fetchesAt(redis);
  const running = [];
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  await queue.pause();
  const idle = worker(async ({ data }) => {
    running.push(data);
    await gate;
  }, { concurrency: 40 });
  await idle.waitUntilReady();
  await queue.addBulk(jobs(40));
  const before = await fetches();
  await queue.resume();
  await until(() => running.length === 40);
  const used = (await fetches()) - before;
  go();
  redis.disconnect();
  assert.ok(used < 10, `${used} commands`);
  assert.deepEqual(running, jobs(40).map(({ data }) => data));
});

bull('a worker takes no more than it can run', async ({ queue, worker }) => {
  let running = 0;
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  const run = async () => {
    running++;
    await gate;
  };
  for (let n = 0; n < 2; n++) await worker(run, { concurrency: 5 }).waitUntilReady();
  await queue.addBulk(jobs(30));
  await until(() => running === 10);
  const counts = [await queue.getActiveCount(), await queue.getWaitingCount()];
  go();
  assert.deepEqual(counts, [10, 20]);
  await until(async () => (await queue.getCompletedCount()) === 30);
});

bull('what was taken for calls that do not come is given back', async ({ queue, worker }) => {
  const byHand = worker(null, { concurrency: 3 });
  await queue.addBulk(jobs(3));
  const job = await byHand.getNextJob('by-hand:1');
  assert.equal(job.data, 0);
  await until(async () => (await queue.getActiveCount()) === 1);
  const done = [];
  worker(async ({ data, attemptsStarted, stalledCounter }) => void done.push([data, attemptsStarted, stalledCounter]));
  await until(() => done.length === 2);
  assert.deepEqual(done, [[1, 1, 0], [2, 1, 0]]);
  await job.moveToCompleted('x', 'by-hand:1', false);
  assert.equal(await queue.getCompletedCount(), 3);
});

bull('a connection that is lost keeps no job from being given back', async ({ queue, worker }) => {
  const proxy = await Proxy.start();
  // ioredis would repeat the command itself.
  const client = await LIBRARIES['node-redis, RESP3'](proxy.url);
  const byHand = new Worker(queue.name, null, { connection: {}, concurrency: 2 }, createDqBackend({ connection: client }));
  byHand.on('error', () => {});
  try {
    await queue.addBulk(jobs(2));
    proxy.drop('DQ.NACK');
    await byHand.getNextJob('by-hand:1');
    await until(() => proxy.lost === 1);
    const done = [];
    worker(async ({ data }) => void done.push(data));
    await until(() => done.length === 1);
  } finally {
    await byHand.close(true);
    await close(client);
    proxy.close();
  }
});

bull('the end of a burst is told once', async ({ queue, worker, events }) => {
  const told = await events();
  let drained = 0;
  const seen = new Promise((resolve) => told.on('completed', ({ jobId }) => jobId === 'last' && resolve(drained)));
  told.on('drained', () => drained++);
  let running = 0;
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  await queue.addBulk(jobs(5));
  worker(async () => {
    running++;
    await gate;
  }, { concurrency: 5 });
  await until(() => running === 5);
  go();
  await until(async () => (await queue.getCompletedCount()) === 5);
  await queue.add('a', {}, { jobId: 'last' });
  assert.equal(await seen, 1);
});
