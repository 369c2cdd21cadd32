/** The data and the return values of BullMQ's jobs in a form that the server cannot read. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

import { Job, Queue, Worker } from 'bullmq';
import { Compression, Layers, Offload, Secrets } from 'dq-queue';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull, connection, newBullName } from './bull.mjs';
import { until, url } from './setup.mjs';

const [old, fresh] = [randomBytes(32), randomBytes(32)];
const factory = createDqBackend({ secrets: new Secrets({ old }) });
const secret = (name, run) => bull(name, run, { factory });

/** Everything that the server has of these queues. */
async function kept(...queues) {
  const redis = new Redis(url);
  const all = [];
  for (const { name } of queues) {
    for (const key of await redis.keys(`bull:${name}*`)) all.push(await redis.dumpBuffer(key));
    for (const state of ['ready', 'delayed', 'running', 'finished', 'dead', 'held']) all.push(await redis.callBuffer('DQ.LIST', `bull:${name}`, state));
  }
  redis.disconnect();
  return Buffer.concat(all.flat(9).filter(Buffer.isBuffer)).toString('latin1');
}

secret('a worker and QueueEvents get what was added, and the server has none of it', async ({ queue, worker, events }) => {
  const told = await events();
  await queue.pause();
  const job = await queue.add('sum', { who: 'ann-smith' });
  const [, second] = await queue.addBulk([{ name: 'a', data: { who: 'bob-smith' } }, { name: 'b', data: { who: 'cy-smith' }, opts: { jobId: 'mine' } }]);
  assert.doesNotMatch(await kept(queue), /-smith/);
  assert.deepEqual((await queue.getJob(job.id)).data, { who: 'ann-smith' });
  assert.deepEqual((await queue.getJobs(['waiting', 'paused'])).map(({ data }) => data.who).sort(), ['ann-smith', 'bob-smith', 'cy-smith']);
  worker(async ({ data }) => `done for ${data.who}`);
  await queue.resume();
  assert.equal(await job.waitUntilFinished(told), 'done for ann-smith');
  assert.equal(await second.waitUntilFinished(told), 'done for cy-smith');
  assert.equal((await queue.getJob('mine')).returnvalue, 'done for cy-smith');
  assert.doesNotMatch(await kept(queue), /-smith/);
});

secret('data that change while a job waits and while it runs', async ({ queue, worker }) => {
  const job = await queue.add('changes', { who: 'ann-smith' }, { delay: 60_000, attempts: 2 });
  await job.updateData({ who: 'bob-smith' });
  assert.doesNotMatch(await kept(queue), /-smith/);
  await job.changePriority({ priority: 3 });
  assert.deepEqual((await queue.getJob(job.id)).data, { who: 'bob-smith' });
  const got = [];
  worker(async (one) => {
    got.push(one.data.who);
    await one.updateData({ who: 'cy-smith' });
    assert.doesNotMatch(await kept(queue), /-smith/);
    if (got.length === 1) throw new Error('again');
  });
  await job.promote();
  await until(async () => (await job.getState()) === 'completed');
  assert.deepEqual(got, ['bob-smith', 'cy-smith']);
});

secret('children of two queues give their parent what they return', async ({ queue, worker, flows }) => {
  const other = new Queue(newBullName(), { connection }, factory);
  const work = async (job) => (job.name === 'parent' ? { of: await job.getChildrenValues(), also: job.data.who } : `${job.data.who} done`);
  const second = new Worker(other.name, work, { connection }, factory);
  const children = [queue, other].map(({ name: queueName }, at) => ({ name: 'child', queueName, data: { who: `child-smith-${at}` } }));
  const { job } = await flows().add({ name: 'parent', queueName: queue.name, data: { who: 'ann-smith' }, children });
  assert.doesNotMatch(await kept(queue, other), /-smith/);
  worker(work);
  await until(async () => (await job.getState()) === 'completed');
  const { of, also } = (await queue.getJob(job.id)).returnvalue;
  assert.deepEqual([Object.values(of).sort(), also], [['child-smith-0 done', 'child-smith-1 done'], 'ann-smith']);
  assert.deepEqual(Object.values((await job.getDependencies()).processed).sort(), ['child-smith-0 done', 'child-smith-1 done']);
  assert.deepEqual((await queue.getDependencies(job.id, 'processed', 0, 9)).items.map(({ v }) => v).sort(), ['child-smith-0 done', 'child-smith-1 done']);
  assert.doesNotMatch(await kept(queue, other), /-smith/);
  await second.close();
  await other.close();
});

secret('a scheduler, and jobs that take the place of one another', async ({ queue, worker }) => {
  const got = [];
  worker(async ({ data }) => void got.push(data.who));
  await queue.upsertJobScheduler('each', { every: 50 }, { name: 'tick', data: { who: 'ann-smith' } });
  assert.deepEqual((await queue.getJobScheduler('each')).template.data, { who: 'ann-smith' });
  assert.deepEqual((await queue.getJobSchedulers())[0].template.data, { who: 'ann-smith' });
  await until(() => got.length >= 3);
  assert.doesNotMatch(await kept(queue), /-smith/);
  await queue.removeJobScheduler('each');
  await queue.upsertJobScheduler('empty', { every: 60_000 });
  assert.equal((await queue.getJobScheduler('empty')).template?.data, undefined);
  await queue.removeJobScheduler('empty');
});

secret('the last data of a deduplication id run under the id of the job that ran', async ({ queue, worker }) => {
  const got = [];
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  worker(async ({ data }) => {
    got.push(data.who);
    await gone;
  });
  const deduplication = { id: 'one', keepLastIfActive: true };
  await queue.add('a', { who: 'first-smith' }, { deduplication });
  await until(() => got.length === 1);
  await queue.add('a', { who: 'last-smith' }, { deduplication });
  assert.doesNotMatch(await kept(queue), /-smith/);
  go();
  await until(() => got.length === 2);
  assert.deepEqual(got, ['first-smith', 'last-smith']);
});

secret('keys rotate, and a job whose key is not known fails until it is', async ({ queue, worker }) => {
  const at = (secrets) => createDqBackend({ secrets });
  const [next, only] = [new Secrets({ fresh, old }), new Secrets({ fresh })].map((secrets) => new Queue(queue.name, { connection }, at(secrets)));
  await queue.add('first', { who: 'ann' });
  const second = await next.add('second', { who: 'bob' });
  await until(async () => (await next.getJobs(['waiting'])).every(({ data }) => data.who));
  const sealed = (await only.getJobs(['waiting'])).map(({ data }) => data);
  assert.deepEqual([sealed.length, sealed.filter(({ who }) => who).length, sealed.filter((data) => data['dq-key'] === 'old').length], [2, 1, 1]);
  const failed = [];
  const running = worker(() => 'done', {});
  running.on('failed', (job, error) => failed.push([job.id, error.message]));
  await until(async () => failed.length === 1);
  assert.deepEqual(failed, [[second.id, 'there is no key "fresh"']]);
  await running.close();
  const job = await Job.fromId(next, second.id);
  assert.equal(job.failedReason, 'there is no key "fresh"');
  await job.retry();
  const knows = new Worker(queue.name, ({ data }) => data.who, { connection }, at(new Secrets({ fresh, old })));
  await until(async () => (await job.getState()) === 'completed');
  await knows.close();
  await only.close();
  await next.close();
});

secret('data in clear, of another job and of another queue are refused', async ({ queue, worker }) => {
  const clear = new Queue(queue.name, { connection }, createDqBackend());
  const elsewhere = new Queue(newBullName(), { connection }, createDqBackend());
  await queue.pause();
  const first = await queue.add('a', { who: 'ann' }, { jobId: 'mine' });
  const { data } = await clear.getJob('mine');
  await clear.add('plain', { who: 'eve' });
  await clear.add('copied', data);
  await elsewhere.add('a', data, { jobId: 'mine' });
  const errors = [];
  const running = worker(() => 'done');
  running.on('failed', (job, error) => errors.push(error.message));
  const moved = new Worker(elsewhere.name, () => 'done', { connection }, factory);
  moved.on('failed', (job, error) => errors.push(error.message));
  await queue.resume();
  await until(async () => errors.length === 3 && (await first.getState()) === 'completed');
  const wrong = 'the message is not what was sent with this id to this queue';
  assert.deepEqual(errors.sort(), ['the message is not encrypted', wrong, wrong]);
  const open = new Queue(queue.name, { connection }, createDqBackend({ secrets: new Secrets({ old }, { plain: true }) }));
  assert.deepEqual((await open.getJobs(['failed'])).map((job) => job.data.who).sort(), ['eve', undefined]);
  await Promise.all([moved.close(), clear.close(), elsewhere.close(), open.close()]);
});

// Node 20 has no zstd.
const zstd = { compress: (payload) => payload.subarray(0, 2), decompress: (payload) => Buffer.concat([payload, Buffer.alloc(1998, 'x'), Buffer.from('"')]) };

bull('what is small is not compressed, and what is large is', async ({ queue }) => {
  const clear = new Queue(queue.name, { connection }, createDqBackend());
  const jobs = await queue.addBulk(['small', `x${'x'.repeat(1998)}`, { 'dq-sealed': 'mine' }].map((data) => ({ name: 'a', data })));
  const seen = await Promise.all(jobs.map(async ({ id }) => (await queue.getJob(id)).data));
  assert.deepEqual([seen[0], seen[1].length, seen[2]], ['small', 1999, { 'dq-sealed': 'mine' }]);
  const there = await Promise.all(jobs.map(async ({ id }) => (await clear.getJob(id)).data));
  assert.equal(there[0], 'small');
  assert.equal(there[1]['dq-encoding'], 'zstd');
  await clear.close();
}, { factory: createDqBackend({ secrets: new Layers(new Compression({ zstd })) }) });

bull('a store of its own is refused', async () => {
  const offload = new Offload(new Map(), new Redis(url, { lazyConnect: true }));
  assert.throws(() => createDqBackend({ secrets: new Layers(new Secrets({ old }), offload) }), /Offload is not supported/);
});
