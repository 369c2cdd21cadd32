/**
 * Kills workers by SIGKILL, each while it runs jobs: `kills.mjs url kills`. Then every job must have been worked off, and
 * none may have been delivered after its completion, by the event stream of the queue. Prints one line of JSON.
 */

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

const LEASE = 500;
const AT_ONCE = 6;
// The workers do about 35 jobs between two kills, and the last one must still find some that run.
const JOBS_FOR_A_KILL = 45;

const [url, times = '300'] = process.argv.slice(2);

if (process.argv[4] === 'worker') {
  const { Worker } = await import('bullmq');
  const { hostname: host, port } = new URL(url);
  let running = 0;
  const run = async () => {
    process.send(++running);
    await sleep(Math.random() * 400);
    process.send(--running);
  };
  new Worker('kills', run, { connection: { host, port: Number(port) }, concurrency: 4, lockDuration: LEASE, maxStalledCount: 1000 }, createDqBackend());
} else {
  const redis = new Redis(url);
  const kills = Number(times);
  const jobs = kills * JOBS_FOR_A_KILL;
  await redis.flushall();
  const queue = new Queue('kills', { connection: redis }, createDqBackend());
  await queue.waitUntilReady();
  await redis.call('DQ.ALTER', 'bull:kills', 'EVENTS', 'kills:events', 'EVENTSLEN', String(jobs * 20));
  await queue.addBulk(Array.from({ length: jobs }, (_, n) => ({ name: 'job', data: n })));
  /** Each worker with the number of jobs that it runs, which it tells. The oldest is first. */
  const started = new Map();
  const start = () => {
    const worker = spawn(process.execPath, [process.argv[1], url, times, 'worker'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    started.set(worker, 0);
    worker.on('message', (running) => started.has(worker) && started.set(worker, running));
  };
  const oldestThatRuns = () => [...started].find(([, running]) => running > 0)?.[0];
  for (let n = 0; n < AT_ONCE; n++) start();
  for (let killed = 0; killed < kills; killed++) {
    await sleep(200 + Math.random() * 300);
    while (!oldestThatRuns()) {
      if ((await queue.getCompletedCount()) === jobs) throw new Error(`all ${jobs} jobs are done after ${killed} kills: there must be more`);
      await sleep(10);
    }
    const one = oldestThatRuns();
    started.delete(one);
    one.kill('SIGKILL');
    start();
  }
  for (let left = jobs; left > 0; await sleep(200)) left = jobs - (await queue.getCompletedCount());
  for (const one of started.keys()) one.kill('SIGKILL');
  let again = 0;
  let leases = 0;
  const completed = new Set();
  for (const [, fields] of await redis.xrange('kills:events', '-', '+')) {
    const { event, id } = Object.fromEntries(fields.flatMap((name, n) => (n % 2 ? [] : [[name, fields[n + 1]]])));
    if (event === 'acked') completed.add(id);
    if (event === 'delivered' && completed.has(id)) again++;
    if (event === 'timeout') leases++;
  }
  console.log(JSON.stringify({ kills, jobs, lost: jobs - completed.size, again, leases }));
  await queue.close();
  redis.disconnect();
}
