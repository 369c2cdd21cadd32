/** Workers and QueueEvents of BullMQ on dq whose client repeats nothing, and which lose any one command. */

import assert from 'node:assert/strict';

import { FlowProducer, QueueEvents, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';

import { bull, connection } from './bull.mjs';
import { LIBRARIES, Proxy, close, until } from './setup.mjs';

/** The commands of a worker that does the jobs below. */
const COMMANDS = ['DQ.CREATE', 'DQ.ALTER', 'DQ.FETCH', 'DQ.NACK', 'DQ.GET', 'HSET', 'XADD', 'DQ.INFO', 'SETNAME'];

const OPTIONS = {
  // A worker that has met an error takes no job for this time.
  runRetryDelay: 3_600_000,
  limiter: { max: 1000, duration: 1000 },
  removeOnComplete: true,
};

for (const [how, what] of Object.entries({ drop: 'is lost', lose: 'has its reply lost' })) {
  for (const word of COMMANDS) {
    bull(`a worker goes on where ${word} ${what}`, async ({ queue, events }) => {
      const told = await events();
      const [runs, completed, failed] = [{}, new Set(), []];
      told.on('completed', ({ jobId }) => completed.add(jobId));
      told.on('failed', ({ jobId }) => failed.push(jobId));
      const proxy = await Proxy.start();
      const client = await LIBRARIES['node-redis, RESP3'](proxy.url);
      proxy[how](word);
      const run = async ({ id, data }) => {
        runs[id] = (runs[id] ?? 0) + 1;
        if (data.fails && runs[id] === 1) throw new Error('not now');
      };
      const worker = new Worker(queue.name, run, { connection: {}, ...OPTIONS }, createDqBackend({ connection: client }));
      worker.on('error', () => {});
      const flows = new FlowProducer({ connection }, createDqBackend());
      try {
        await queue.addBulk([
          { name: 'a', data: {}, opts: { jobId: 'first' } },
          { name: 'a', data: { fails: true }, opts: { jobId: 'second', attempts: 2 } },
        ]);
        const child = { name: 'a', queueName: queue.name, data: {}, opts: { jobId: 'child', removeOnComplete: true } };
        await flows.add({ name: 'a', queueName: queue.name, data: {}, opts: { jobId: 'parent' }, children: [child] });
        await until(() => completed.size === 4);
        assert.deepEqual(runs, { first: 1, second: 2, child: 1, parent: 1 });
        assert.deepEqual(failed, []);
        assert.equal(proxy.lost, 1);
      } finally {
        await worker.close(true);
        await flows.close();
        await close(client);
        proxy.close();
      }
    });
  }
}

for (const word of ['DQ.CREATE', 'DQ.ALTER', 'DQ.GET', 'XREVRANGE', 'XREAD', 'SETNAME']) {
  bull(`QueueEvents go on where ${word} is lost`, async ({ queue, worker }) => {
    const proxy = await Proxy.start();
    const client = await LIBRARIES['node-redis, RESP3'](proxy.url);
    proxy.drop(word);
    const told = new QueueEvents(queue.name, { connection: {} }, createDqBackend({ connection: client }));
    told.on('error', () => {});
    const ids = new Set();
    told.on('completed', ({ jobId }) => ids.add(jobId));
    worker(async () => {});
    try {
      await until(async () => {
        await queue.add('a', {});
        return ids.size > 0;
      });
      assert.equal(proxy.lost, 1);
    } finally {
      await told.close();
      await close(client);
      proxy.close();
    }
  });
}
