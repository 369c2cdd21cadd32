/**
 * The old side: the BullMQ or the Bull in a folder, on Redis. bullmq.mjs FOLDER PORT WHAT [WORDS]. Each job has a number.
 * With DQ_BACKEND it is the new side: BullMQ on dq. With TAKEOVER_CLUSTER the port is that of a node of a cluster.
 */

import { appendFileSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder, port, what, ...words] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const isBull = existsSync(`${folder}/node_modules/bull`);
const bullmq = isBull ? bull() : require('bullmq');
const address = { host: '127.0.0.1', port: Number(port) };
const connection = process.env.TAKEOVER_CLUSTER ? new (require('ioredis').Cluster)([address]) : address;
const prefix = process.env.TAKEOVER_CLUSTER ? '{bull}' : undefined;
const { Queue, Worker, FlowProducer } = bullmq;

/** Bull, as far as it is needed, under the names of BullMQ. */
function bull() {
  const Bull = require('bull');
  const open = (name, settings) => new Bull(name, { redis: address, settings });
  return {
    Queue: function (name) {
      return open(name);
    },
    Worker: class {
      constructor(name, run, { lockDuration = 30_000 }) {
        this.queue = open(name, { lockDuration });
        this.queue.process('*', run);
      }
      on() {}
      close() {
        return this.queue.close();
      }
    },
  };
}

if (process.env.DQ_BACKEND) {
  bullmq.setDefaultBackendFactory(require('dq-queue/bullmq').createDqBackend({ prefix: process.env.DQ_BACKEND }));
}

const doing = {
  /** Jobs of all kinds in the queue mails, and failed ones in fails. */
  async fill() {
    const queue = new Queue('mails', { connection });
    await queue.addBulk(Array.from({ length: 30 }, (_, n) => ({ name: 'plain', data: { n } })));
    await queue.add('lifo', { n: 30 }, { lifo: true, removeOnComplete: true });
    for (const priority of [9, 3, 5]) await queue.add('prio', { n: 30 + priority }, { priority });
    const later = { delay: Number(words[0] ?? 3_600_000), attempts: 3, backoff: { type: 'fixed', delay: 50 } };
    await queue.addBulk(Array.from({ length: 10 }, (_, n) => ({ name: 'later', data: { n: 50 + n }, opts: { ...later, priority: n === 3 ? 4 : undefined } })));
    await queue.add('one', { n: 70 }, { delay: 3_600_000, [isBull ? 'debounce' : 'deduplication']: { id: 'same', ttl: 7_200_000 } });
    await queue.add('own', { n: 71 }, { jobId: 'own-1', keepLogs: 5 });
    await queue.addBulk([{ name: 'far', data: { n: 72, big: 2n ** 60n + '' }, opts: { delay: 90 * 24 * 3_600_000 } }]);
    if (queue.upsertJobScheduler) {
      await queue.upsertJobScheduler('nightly', { pattern: '0 3 * * *', tz: 'Europe/Berlin' }, { name: 'night', data: { n: 80 }, opts: { attempts: 4 } });
      await queue.upsertJobScheduler('often', { every: 7_200_000 }, { name: 'often', data: { n: 81 } });
    } else {
      await queue.add('night', { n: 80 }, { repeat: { [isBull ? 'cron' : 'pattern']: '0 3 * * *', tz: 'Europe/Berlin' }, attempts: 4 });
      await queue.add('often', { n: 81 }, { repeat: { every: 7_200_000 } });
    }
    const fails = new Queue('fails', { connection });
    await fails.add('dead', { n: 90 }, { attempts: 2, backoff: 10 });
    await fails.add('retried', { n: 91 }, { attempts: 5, backoff: 3_600_000 });
    const worker = new Worker('fails', async (job) => {
      await job.log(`try ${job.attemptsMade}`);
      throw new Error(`no ${job.data.n}`);
    }, { connection });
    worker.on('error', () => {});
    while ((await fails.getFailedCount()) < 1 || (await fails.getDelayedCount()) < 1) await sleep(20);
    await worker.close();
  },
  /** The child of a flow, and its parent. */
  async flow() {
    await new FlowProducer({ connection }).add({
      name: 'parent', queueName: 'mails', data: { n: 1 }, children: [{ name: 'child', queueName: 'mails', data: { n: 2 } }],
    });
  },
  async many() {
    const queue = new Queue(words[2] ?? 'mails', { connection, prefix });
    const [count, delay] = words.map(Number);
    for (let n = 0; n < count; n += 1000) {
      const size = Math.min(1000, count - n);
      await queue.addBulk(Array.from({ length: size }, (_, at) => ({ name: 'job', data: { n: n + at, due: Date.now() + (delay ? delay + at : 0), text: 'x'.repeat(100) }, opts: { delay: delay && delay + at } })));
    }
  },
  async add() {
    await new Queue(words[1] ?? 'mails', { connection }).add('job', { n: Number(words[0]) });
  },
  async pause() {
    await new Queue('mails', { connection }).pause();
  },
  async again() {
    const queue = new Queue('mails', { connection });
    await queue.add('one', { n: 170 }, { [isBull ? 'debounce' : 'deduplication']: { id: 'same', ttl: 7_200_000 } });
    await queue.add('own', { n: 171 }, { jobId: 'own-1' });
  },
  /** Adds a job every few ms, each with the time at which it is due. */
  async produce() {
    const queue = new Queue('mails', { connection });
    for (let n = 0; n < Number(words[0]); n++) {
      const delay = n % 2 ? 200 : 0;
      await queue.add('job', { n, due: Date.now() + delay }, { delay });
      await sleep(5);
    }
  },
  /** Runs jobs, and writes their numbers to a file. */
  async work() {
    const [name, file] = words;
    const worker = new Worker(name, async (job) => {
      if (job.data.n >= 666) await sleep(job.data.n === 666 ? 3_000_000 : 3000);
      appendFileSync(file, `${job.data.n}\n`);
    }, { connection, lockDuration: 1000 });
    worker.on('error', (error) => console.error(error.message));
    await new Promise((resolve) => process.once('SIGTERM', resolve));
    await worker.close();
  },
  /** Tells what the API of BullMQ shows. */
  async show() {
    const [name] = words;
    const queue = new Queue(name, { connection });
    const [failed, delayed, schedulers] = [await queue.getFailed(), await queue.getDelayed(), await queue.getJobSchedulers()];
    const logs = failed.length ? (await queue.getJobLogs(failed[0].id)).logs : [];
    const shown = (job) => ({ ...job.asJSON(), opts: job.opts, failedReason: job.failedReason });
    console.log(JSON.stringify({ failed: failed.map(shown), delayed: delayed.map(shown), schedulers, logs, paused: await queue.isPaused() }));
  },
};

await doing[what]();
process.exit();
