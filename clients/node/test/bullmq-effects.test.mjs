/** The changes of other keys by jobs of BullMQ, in the same step as their end. */

import assert from 'node:assert/strict';

import { DelayedError } from 'bullmq';
import { effects } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull } from './bull.mjs';
import { until, url } from './setup.mjs';

bull('the effects of a job go with its completion, and only with that', async ({ queue, worker }) => {
  const redis = new Redis(url);
  const paid = `${queue.name}:paid`;
  const errors = [];
  const running = worker(async (job, token) => {
    const all = effects(job).incrby(paid, 5);
    if (job.name === 'fails') throw new Error('no');
    if (job.name === 'is refused') all.ifMissing(paid);
    if (job.name === 'is lost') await redis.call('DQ.CANCEL', `bull:${queue.name}`, job.id);
    if (job.name === 'is delayed') {
      await job.moveToDelayed(Date.now() + 60_000, token);
      throw new DelayedError();
    }
    return job.name;
  });
  running.on('error', (error) => errors.push(error.message));
  const names = ['returns', 'fails', 'is refused', 'is lost', 'is delayed', 'returns again'];
  await queue.addBulk(names.map((name) => ({ name, data: {} })));
  await until(async () => {
    const { completed, failed, delayed, active, waiting } = await queue.getJobCounts();
    return completed === 2 && failed === 2 && delayed === 1 && active === 0 && waiting === 0;
  });
  assert.equal(await redis.get(paid), '10');
  const failed = await queue.getFailed();
  assert.deepEqual(failed.map(({ name, failedReason }) => [name, failedReason.split(' ')[0]]).sort(), [['fails', 'no'], ['is refused', 'CONDITION']]);
  assert.ok(errors.some((error) => /Missing (key|lock) for job/.test(error)), String(errors));
  assert.throws(() => effects({ id: '1' }), /only a job of a worker with dq/);
  redis.disconnect();
});
