/**
 * Measures BullMQ on one backend: `measure.mjs dq|redis url jobs together|apart`. Prints one line of JSON. The last word says
 * where the processes run (run.sh); lateness and bytes do not depend on it, and are measured apart.
 *
 * Server CPU is that of the server process over adding and working off, for each job. A worker runs for hours, so it is
 * measured after the jobs in which Node compiles it.
 */

import { Queue, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

const [backend, url, size, placement] = process.argv.slice(2);
const jobs = Number(size);
const warming = jobs / 2;
const factory = backend === 'dq' ? createDqBackend() : undefined;
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const redis = new Redis(url);
const PAYLOAD = { text: 'x'.repeat(87) }; // 100 bytes of JSON

const info = async (section, field) => Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(await redis.info(section))[1]);
const cpu = async () => (await info('cpu', 'used_cpu_user')) + (await info('cpu', 'used_cpu_sys'));

async function fill(queue, count, opts) {
  for (let at = 0; at < count; at += 1000) await queue.addBulk(Array.from({ length: Math.min(1000, count - at) }, () => ({ name: 'job', data: PAYLOAD, opts })));
}

/** Jobs a second of one worker, and CPU microseconds of the server for each job, adding included. */
async function working(concurrency) {
  await redis.flushall();
  const queue = new Queue('bench', { connection }, factory);
  await queue.waitUntilReady();
  const count = warming + jobs;
  const empty = await cpu();
  await fill(queue, count, { removeOnComplete: true });
  const filled = await cpu();
  let done = 0;
  let start;
  let warm;
  let finish;
  const all = new Promise((resolve) => (finish = resolve));
  const one = async () => {
    done++;
    if (done === warming) {
      start = performance.now();
      warm = cpu();
    } else if (done === count) {
      finish();
    }
  };
  const worker = new Worker('bench', one, { connection, concurrency, autorun: false }, factory);
  await worker.waitUntilReady();
  worker.run();
  await all;
  const seconds = (performance.now() - start) / 1000;
  const used = (await cpu()) - (await warm);
  await worker.close();
  await queue.close();
  return { rate: jobs / seconds, cpu: ((filled - empty) / count + used / jobs) * 1e6 };
}

/** The 99th percentile of lateness in ms, of jobs that fall due over five seconds. */
async function lateness(count) {
  await redis.flushall();
  const queue = new Queue('bench', { connection }, factory);
  await queue.waitUntilReady();
  const base = Date.now() + 4000;
  for (let at = 0; at < count; at += 1000) {
    const now = Date.now();
    await queue.addBulk(Array.from({ length: 1000 }, (_, n) => {
      const due = base + Math.floor(((at + n) * 5000) / count);
      return { name: 'job', data: { due }, opts: { delay: due - now, timestamp: now, removeOnComplete: true } };
    }));
  }
  const late = [];
  let finish;
  const all = new Promise((resolve) => (finish = resolve));
  const worker = new Worker('bench', async ({ data }) => { late.push(Date.now() - data.due); if (late.length === count) finish(); }, { connection, concurrency: 50 }, factory);
  await all;
  await worker.close();
  await queue.close();
  late.sort((a, b) => a - b);
  return late[Math.floor(count * 0.99)];
}

/** Bytes of the server for a job that is delayed for a day, its payload of 100 bytes included. */
async function bytes(count) {
  await redis.flushall();
  const queue = new Queue('bench', { connection }, factory);
  await queue.waitUntilReady();
  const before = await info('memory', 'used_memory');
  await fill(queue, count, { delay: 86_400_000 });
  const used = (await info('memory', 'used_memory')) - before;
  await queue.close();
  return used / count;
}

const result = { backend, placement };
for (const concurrency of [1, 10, 100]) result[concurrency] = await working(concurrency);
if (placement === 'apart') {
  result.late = await lateness(Math.min(10_000, Math.max(1000, Math.floor(jobs / 1000) * 1000)));
  result.bytes = await bytes(jobs);
}
console.log(JSON.stringify(result));
redis.disconnect();
