/** dq as a backend of BullMQ, in a cluster. */

import assert from 'node:assert/strict';
import test from 'node:test';

import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';

import { newBullName } from './bull.mjs';
import { CLUSTERS, close, until } from './setup.mjs';

const options = { connection: {} };

/** A shop whose queues are in one slot: a flow, ids, priorities, deduplication, and all removals. */
async function shop(factory, keep) {
  const [orders, mails] = ['orders', 'mails'].map((name) => keep(new Queue(name, options, factory)));
  const events = keep(new QueueEvents('orders', options, factory));
  await events.waitUntilReady();
  const sent = [];
  const mailing = async ({ data }) => {
    sent.push(data);
    return data;
  };
  const mailer = keep(new Worker('mails', mailing, { ...options, concurrency: 5 }, factory));
  const shipper = keep(new Worker('orders', async (job) => Object.values(await job.getChildrenValues()), options, factory));
  const { job } = await keep(new FlowProducer(options, factory)).add({
    name: 'order',
    queueName: 'orders',
    children: [{ name: 'mail', queueName: 'mails', data: 1 }],
  });
  assert.deepEqual(await job.waitUntilFinished(events), [1]);
  await mails.addBulk([2, 3].map((data) => ({ name: 'mail', data, opts: { jobId: `m${data}`, priority: data } })));
  for (const data of [4, 5]) await mails.add('mail', data, { deduplication: { id: 'x' }, delay: 200 });
  await until(() => sent.length === 4);
  assert.deepEqual(sent.sort(), [1, 2, 3, 4]);
  assert.equal((await mails.getWorkers()).length, 1);
  for (const worker of [mailer, shipper]) await worker.close();
  await mails.add('mail', 6, { delay: 1e6 });
  await mails.pause();
  await mails.obliterate();
  assert.deepEqual(await mails.getJobCounts('delayed', 'completed'), { delayed: 0, completed: 0 });
}

for (const [library, connect] of Object.entries(CLUSTERS)) {
  const skip = process.env.DQ_TEST_CLUSTER ? false : 'DQ_TEST_CLUSTER names no cluster';
  test(`${library}, cluster: queues whose prefix has a hash tag`, { skip }, async () => {
    const client = await connect();
    const made = [];
    try {
      // Each library gets a different slot, so any of the nodes may have it.
      const factory = createDqBackend({ connection: client, prefix: `{${newBullName()}}` });
      await shop(factory, (one) => {
        made.unshift(one);
        return one;
      });
    } finally {
      for (const one of made) await one.close();
      await close(client);
    }
  });
}
