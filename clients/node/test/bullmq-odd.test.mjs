/** dq as a backend of BullMQ in odd hands: much at once, long texts, names of all kinds, and errors that are none. */

import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull, connection, newBullName } from './bull.mjs';
import { until, url } from './setup.mjs';

const jobs = (count, opts) => Array.from({ length: count }, (_, data) => ({ name: 'a', data, opts }));

bull('130,000 jobs are added at once, listed and removed', async ({ queue }) => {
  const added = await queue.addBulk(jobs(130_000));
  assert.equal(added.at(-1).data, 129_999);
  const ids = await queue.getRanges(['waiting'], 0, -1, true);
  assert.deepEqual(ids, added.map(({ id }) => id));
  const found = await queue.getJobs(['waiting'], 129_998, 129_999, true);
  assert.deepEqual(found.map(({ data }) => data), [129_998, 129_999]);
  await queue.drain();
  assert.equal(await queue.getWaitingCount(), 0);
});

bull('all delayed jobs are promoted, however many are asked for at once', async ({ queue }) => {
  await queue.addBulk(jobs(12_000, { delay: 86_400_000 }));
  await queue.promoteJobs({ count: 11_000 });
  assert.deepEqual(await queue.getJobCounts('delayed', 'waiting'), { delayed: 0, waiting: 12_000 });
});

bull('two that have failed jobs run again at once do not fail', async ({ queue, worker }) => {
  let good = false;
  const done = [];
  worker(async ({ data }) => {
    if (!good) throw new Error('no');
    done.push(data);
  }, { concurrency: 50 });
  await queue.addBulk(jobs(300));
  await until(async () => (await queue.getFailedCount()) === 300);
  good = true;
  await Promise.all([queue.retryJobs({ count: 70 }), queue.retryJobs({ count: 70 })]);
  await until(async () => (await queue.getCompletedCount()) === 300);
  assert.deepEqual(done.sort((a, b) => a - b), Array.from({ length: 300 }, (_, n) => n));
});

bull('jobs of megabytes are added together', async ({ queue, worker }) => {
  const data = 'x'.repeat(3 * 1024 * 1024);
  await queue.addBulk(Array.from({ length: 8 }, () => ({ name: 'a', data, opts: { removeOnComplete: true } })));
  let bytes = 0;
  worker(async (job) => void (bytes += job.data.length), { concurrency: 4 });
  await until(() => bytes === 8 * data.length);
});

bull('a result that the server refuses fails its job, and no other one that ends in the same moment', async ({ queue, worker }) => {
  const redis = new Redis(url);
  const [, usual] = await redis.config('GET', 'dq.max-payload');
  await redis.config('SET', 'dq.max-payload', '1mb');
  try {
    let running = 0;
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    worker(async ({ data }) => {
      if (++running === 10) go();
      await gate;
      return data === 4 ? 'x'.repeat(2 ** 20) : data;
    }, { concurrency: 10 });
    await queue.addBulk(jobs(10));
    await until(async () => (await queue.getCompletedCount()) + (await queue.getFailedCount()) === 10);
    const failed = await queue.getFailed();
    assert.deepEqual(failed.map(({ data }) => data), [4]);
    assert.match(failed[0].failedReason, /a result must be at most 1048576 bytes long/);
  } finally {
    await redis.config('SET', 'dq.max-payload', usual);
    redis.disconnect();
  }
});

bull('an error of any length fails its job, after the tries that it has', async ({ queue, worker }) => {
  worker(async () => {
    throw new Error(`no ${'é'.repeat(200_000)}`);
  });
  const job = await queue.add('a', {}, { attempts: 3 });
  await until(async () => (await job.getState()) === 'failed');
  const { attemptsMade, failedReason, stacktrace } = await queue.getJob(job.id);
  assert.equal(attemptsMade, 3);
  assert.match(failedReason, /^no é{1000}/);
  assert.match(stacktrace.at(-1), /^Error: no é/);
});

bull('of many long stack traces the last ones are kept', async ({ queue, worker }) => {
  worker(async ({ attemptsMade }) => {
    throw Object.assign(new Error('no'), { stack: `${attemptsMade} ${'x'.repeat(20_000)}` });
  });
  const job = await queue.add('a', {}, { attempts: 6 });
  await until(async () => (await job.getState()) === 'failed');
  const { stacktrace } = await queue.getJob(job.id);
  assert.deepEqual(stacktrace.map((trace) => trace[0]), ['3', '4', '5']);
});

bull('a processor may throw what is no error', async ({ queue, worker }) => {
  const thrown = ['a text', 5, { no: 'message' }];
  let at = 0;
  worker(async ({ name }) => {
    if (name === 'bad') throw thrown[at++];
  });
  for (const _ of thrown) await queue.add('bad', {});
  await until(async () => (await queue.getFailedCount()) === thrown.length);
  await queue.add('good', {});
  await until(async () => (await queue.getCompletedCount()) === 1);
});

bull('a processor that throws nothing at all loses its job when the lock ends', async ({ queue, worker }) => {
  // BullMQ looks at the error before it tells the backend of it.
  worker(async ({ name }) => {
    if (name === 'bad') throw undefined;
  }, { lockDuration: 100, skipLockRenewal: true });
  const job = await queue.add('bad', {});
  await until(async () => (await job.getState()) === 'failed');
  assert.equal((await queue.getJob(job.id)).failedReason, 'job stalled more than allowable limit');
  await queue.add('good', {});
  await until(async () => (await queue.getCompletedCount()) === 1);
});

bull('progress and data that are changed at once are both kept', async ({ queue, worker }) => {
  worker(async (job) => {
    await Promise.all([job.updateProgress(50), job.updateData({ step: 2 }), job.updateProgress(60)]);
  });
  const job = await queue.add('a', { step: 1 });
  await until(async () => (await job.getState()) === 'completed');
  const { progress, data } = await queue.getJob(job.id);
  assert.deepEqual([progress, data], [60, { step: 2 }]);
});

bull('data that are too long for a note are refused, and the job goes on without them', async ({ queue, worker }) => {
  worker(async (job) => {
    await assert.rejects(job.updateData('x'.repeat(70_000)), /longer than a note/);
    await job.updateProgress(1);
    throw new Error('the end');
  });
  const job = await queue.add('a', 'short');
  await until(async () => (await job.getState()) === 'failed');
  const { failedReason, progress, data } = await queue.getJob(job.id);
  assert.deepEqual([failedReason, progress, data], ['the end', 1, 'short']);
});

bull('a flow has 20,000 children', async ({ queue, flows }) => {
  const children = jobs(20_000).map((child) => ({ ...child, queueName: queue.name }));
  const { job } = await flows().add({ name: 'parent', queueName: queue.name, children });
  assert.deepEqual(await queue.getJobCounts('waiting', 'waiting-children'), { waiting: 20_000, 'waiting-children': 1 });
  assert.equal((await job.getDependenciesCount()).unprocessed, 20_000);
});

bull('ids with colons are ids of parents and children', async ({ queue, worker, flows }) => {
  const to = { queueName: queue.name };
  const { job: parent } = await flows().add({
    name: 'parent', ...to, opts: { jobId: 'a:b:c' },
    children: [
      { name: 'late', ...to, opts: { jobId: 'd:e:f', delay: 86_400_000 } },
      { name: 'child', ...to, data: 1, opts: { jobId: 'g:h:i', removeOnComplete: true } },
    ],
  });
  const late = await queue.getJob('d:e:f');
  assert.equal(await late.removeChildDependency(), true);
  assert.equal(await late.getState(), 'delayed');
  worker(async (job) => (job.name === 'parent' ? job.getChildrenValues() : job.data));
  await until(async () => (await parent.getState()) === 'completed');
  assert.deepEqual((await queue.getJob('a:b:c')).returnvalue, { [`${queue.qualifiedName}:g:h:i`]: 1 });
});

bull('a parent that waits for its children still does so with another priority', async ({ queue, flows }) => {
  const children = [{ name: 'child', queueName: queue.name, opts: { delay: 86_400_000 } }];
  const { job } = await flows().add({ name: 'parent', queueName: queue.name, children });
  await job.changePriority({ priority: 5 });
  assert.equal(await job.getState(), 'waiting-children');
  await (await queue.getDelayed())[0].promote();
  assert.equal(await job.getState(), 'waiting-children');
  assert.equal((await queue.getJob(job.id)).priority, 5);
});

bull('a worker has any name, and its jobs say so', async ({ queue, worker }) => {
  const name = 'mail sender, größe 2 🚀';
  const one = worker(async ({ data }) => data, { name, drainDelay: 60 });
  await one.waitUntilReady();
  for (const n of [1, 2]) {
    await queue.add('a', n, { jobId: `job ${n}` });
    await until(async () => (await queue.getCompletedCount()) === n);
    assert.equal((await queue.getJob(`job ${n}`)).processedBy, name);
  }
  assert.equal((await queue.getWorkers()).length, 1);
});

test('a queue and its prefix have any name', async () => {
  const factory = createDqBackend({ prefix: `größe 2/${newBullName()}` });
  const queue = new Queue('邮件 *[🚀]\\', { connection }, factory);
  const worker = new Worker(queue.name, async ({ data }) => data, { connection }, factory);
  const failures = [];
  worker.on('error', (error) => failures.push(error));
  await worker.waitUntilReady();
  for (const n of [1, 2]) await queue.add('ä', { n: '🚀' }, { jobId: `*[${n}]`, deduplication: { id: `?*${n}` } });
  await until(async () => (await queue.getCompletedCount()) === 2);
  assert.deepEqual((await queue.getJob('*[1]')).returnvalue, { n: '🚀' });
  await (await queue.getJob('*[1]')).remove();
  assert.deepEqual((await queue.getCompleted()).map(({ id }) => id), ['*[2]']);
  await worker.close();
  await queue.obliterate();
  await queue.close();
  assert.deepEqual(failures, []);
});

bull('a concurrency that is lowered while the worker runs holds at once', async ({ queue, worker }) => {
  let running = 0;
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  await queue.pause();
  const one = worker(async () => {
    running++;
    await gate;
  }, { concurrency: 40 });
  one.concurrency = 2;
  await one.waitUntilReady();
  await queue.addBulk(jobs(20));
  await queue.resume();
  await until(() => running === 2);
  const counts = [await queue.getActiveCount(), await queue.getWaitingCount()];
  go();
  assert.deepEqual(counts, [2, 18]);
  await until(async () => (await queue.getCompletedCount()) === 20);
});

bull('a queue with jobs that run is removed by force only, and its limits with it', async ({ queue, worker }) => {
  let running = 0;
  let go;
  let gate = new Promise((resolve) => (go = resolve));
  worker(async () => {
    running++;
    await gate;
    running--;
  }, { concurrency: 3 });
  await queue.setGlobalConcurrency(1);
  await queue.addBulk(jobs(3));
  await until(() => running === 1);
  await assert.rejects(queue.obliterate(), /Cannot obliterate queue with active jobs/);
  await queue.obliterate({ force: true });
  go();
  await until(() => running === 0);
  gate = new Promise((resolve) => (go = resolve));
  await queue.addBulk(jobs(3));
  await until(() => running === 3);
  go();
  await until(async () => (await queue.getCompletedCount()) === 3);
});

bull('a worker that does not run by itself gives jobs by hand, with any token', async ({ queue, worker }) => {
  const byHand = worker(async () => assert.fail('it does not run'), { autorun: false, concurrency: 5 });
  await queue.addBulk(jobs(3));
  const [one, two] = [await byHand.getNextJob('my token'), await byHand.getNextJob('an:other')];
  assert.deepEqual([one.data, two.data], [0, 1]);
  await one.moveToCompleted('x', 'my token', false);
  // Whoever knows the token may settle the job.
  await (await queue.getJob(two.id)).moveToFailed(new Error('no'), 'an:other', false);
  assert.deepEqual(await queue.getJobCounts('completed', 'failed'), { completed: 1, failed: 1 });
  assert.equal((await byHand.getNextJob('my token')).data, 2);
  assert.equal(await byHand.getNextJob('my token', { block: false }), undefined);
});

bull('events go on behind a stream that was trimmed', async ({ queue, worker, events }) => {
  const told = await events();
  worker(async ({ data }) => data);
  for (const n of [1, 2, 3]) {
    const job = await queue.add('a', n);
    assert.equal(await job.waitUntilFinished(told), n);
    await queue.trimEvents(0);
  }
});

test('a queue that another client has made gets the options of jobs', async () => {
  const other = new Redis(url);
  const name = newBullName();
  await other.call('DQ.SEND', `bull:${name}`, JSON.stringify({ name: 'theirs', data: 1 }), 'ID', 'theirs');
  other.disconnect();
  const factory = createDqBackend();
  const theirs = new Queue(name, { connection }, factory);
  await theirs.add('mine', 2, { jobId: 'mine', attempts: 6 });
  const one = new Worker(name, async (job) => {
    if (job.name === 'mine' && job.attemptsMade < 5) throw new Error('not yet');
    return job.data;
  }, { connection }, factory);
  await until(async () => (await theirs.getCompletedCount()) === 2);
  assert.deepEqual([(await theirs.getJob('theirs')).returnvalue, (await theirs.getJob('mine')).attemptsMade], [1, 6]);
  await one.close();
  await theirs.close();
});

bull('a queue that was deleted is made again, with all that its processes have set', async ({ queue, worker, events }) => {
  const told = await events({ blockingTimeout: 50 });
  const done = [];
  const one = worker(async ({ data }) => data, { stalledInterval: 50, limiter: { max: 1000, duration: 777 } });
  one.on('error', (error) => done.push(error.message));
  one.on('completed', ({ data }) => done.push(data));
  await queue.add('a', 1, { priority: 1 });
  await until(() => done.length === 1);
  const other = new Redis(url, { protocol: 2 });
  await other.del(queue.qualifiedName);
  const info = async (field) => {
    const all = await other.call('DQ.INFO', queue.qualifiedName).catch(() => []);
    return String(all[all.indexOf(field) + 1]);
  };
  try {
    await until(async () => (await info('rate')) === '1000 PER 777');
    await until(async () => (await info('events')) !== 'null');
    assert.equal(await info('retries'), '-1');
  } finally {
    other.disconnect();
  }
  const job = await queue.add('a', 2, { priority: 1 });
  assert.equal(await job.waitUntilFinished(told), 2);
  await until(() => done.length === 2);
  assert.deepEqual(done, [1, 2]);
});

test('options with a keyPrefix are refused, and leave no connection', async () => {
  const open = new Set();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => {});
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const to = { host: '127.0.0.1', port: server.address().port, keyPrefix: 'a:' };
  assert.throws(() => new Queue('x', { connection: to }, createDqBackend()), /keyPrefix/);
  await sleep(200);
  assert.equal(open.size, 0);
  server.close();
});
