/** dq as a backend of BullMQ: as applications, NestJS' module and bull-board use it. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue, QueueEvents, UnrecoverableError, WaitingChildrenError, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import { Redis } from 'ioredis';

import { bull, connection, newBullName } from './bull.mjs';
import { LIBRARIES, close, Proxy, until, url } from './setup.mjs';

bull('a job is worked off, and its result is kept', async ({ queue, worker, events }) => {
  const told = await events();
  worker(async ({ data }) => data.a + data.b);
  const job = await queue.add('sum', { a: 1, b: 2 });
  assert.match(job.id, /^\d+$/);
  assert.equal(await job.waitUntilFinished(told), 3);
  assert.equal(await job.getState(), 'completed');
  const found = await queue.getJob(job.id);
  assert.deepEqual([found.name, found.data, found.returnvalue, found.attemptsMade], ['sum', { a: 1, b: 2 }, 3, 1]);
});

bull('a failed job is tried again after its backoff, then it has failed for good', async ({ queue, worker, events }) => {
  const told = await events();
  const starts = [];
  worker(async (job) => {
    starts.push([job.attemptsMade, performance.now()]);
    throw new Error(`no ${job.attemptsMade}`);
  });
  const job = await queue.add('bad', {}, { attempts: 3, backoff: 100 });
  await assert.rejects(job.waitUntilFinished(told), /no 2/);
  assert.deepEqual(starts.map(([made]) => made), [0, 1, 2]);
  assert.ok(starts[1][1] - starts[0][1] >= 99);
  const found = await queue.getJob(job.id);
  assert.deepEqual([found.failedReason, found.attemptsMade, found.stacktrace.length], ['no 2', 3, 3]);
  await found.retry();
  await until(async () => (await queue.getJob(job.id)).attemptsMade === 4);
});

bull('an unrecoverable error is the end at once', async ({ queue, worker }) => {
  worker(async () => {
    throw new UnrecoverableError('never');
  });
  const job = await queue.add('bad', {}, { attempts: 5 });
  await until(async () => (await job.getState()) === 'failed');
  assert.equal((await queue.getJob(job.id)).attemptsMade, 1);
});

bull('a delayed job comes at its time, and can be promoted', async ({ queue, worker }) => {
  const done = [];
  worker(async (job) => done.push(job.name));
  const late = await queue.add('late', {}, { delay: 86_400_000 });
  await queue.add('soon', {}, { delay: 100 });
  assert.equal(await queue.getDelayedCount(), 2);
  await until(() => done.length === 1);
  await late.promote();
  await until(() => done.length === 2);
  assert.deepEqual(done, ['soon', 'late']);
});

bull('priority and lifo give the order', async ({ queue, worker }) => {
  await queue.addBulk([
    { name: 'p20', data: {}, opts: { priority: 20 } },
    { name: 'plain', data: {} },
    { name: 'p3', data: {}, opts: { priority: 3 } },
    { name: 'p2000000', data: {}, opts: { priority: 2_000_000 } },
    { name: 'lifo', data: {}, opts: { lifo: true } },
  ]);
  assert.deepEqual(await queue.getJobCounts('waiting', 'prioritized'), { waiting: 2, prioritized: 3 });
  const done = [];
  worker(async (job) => done.push(job.name));
  await until(() => done.length === 5);
  assert.deepEqual(done, ['lifo', 'plain', 'p3', 'p20', 'p2000000']);
});

bull('an id is taken as long as its job is kept', async ({ queue, worker }) => {
  worker(async () => {});
  const add = (data) => queue.add('a', data, { jobId: 'one' });
  const job = await add(1);
  await until(async () => (await job.getState()) === 'completed');
  await add(2);
  await queue.addBulk([{ name: 'a', data: 3, opts: { jobId: 'one' } }]);
  assert.deepEqual((await queue.getJob('one')).data, 1);
  await job.remove();
  assert.deepEqual([(await add(4)).id, (await queue.getJob('one')).data], ['one', 4]);
});

bull('a deduplicated job is added once while it has not ended, or for its ttl', async ({ queue, worker }) => {
  const one = await queue.add('a', {}, { deduplication: { id: 'x' } });
  const two = await queue.add('a', {}, { deduplication: { id: 'x' } });
  assert.equal(two.id, one.id);
  assert.equal(await queue.getDeduplicationJobId('x'), one.id);
  worker(async () => {});
  await until(async () => (await one.getState()) === 'completed');
  const three = await queue.add('a', {}, { deduplication: { id: 'x', ttl: 60_000 } });
  assert.notEqual(three.id, one.id);
  await until(async () => (await three.getState()) === 'completed');
  assert.equal((await queue.add('a', {}, { deduplication: { id: 'x', ttl: 60_000 } })).id, three.id);
});

bull('a debounced job has the last data', async ({ queue, worker }) => {
  const done = [];
  worker(async (job) => done.push(job.data));
  for (const n of [1, 2, 3]) await queue.add('a', n, { delay: 300, deduplication: { id: 'x', ttl: 300, extend: true, replace: true } });
  assert.equal(await queue.getDelayedCount(), 1);
  await until(() => done.length > 0);
  assert.deepEqual(done, [3]);
});

bull('keepLastIfActive runs the last one behind the one that runs', async ({ queue, worker }) => {
  const done = [];
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  worker(async (job) => {
    done.push(job.data);
    if (job.data === 1) await gate;
  });
  const add = (n) => queue.add('a', n, { deduplication: { id: 'x', keepLastIfActive: true } });
  await add(1);
  await until(() => done.length === 1);
  await add(2);
  await add(3);
  go();
  await until(() => done.length === 2);
  assert.deepEqual(done, [1, 3]);
});

bull('a flow runs the children first, and gives their results to the parent', async ({ queue, worker, flows }) => {
  const done = [];
  worker(async (job) => {
    done.push(job.name);
    return job.name === 'parent' ? Object.values(await job.getChildrenValues()).sort() : job.data;
  });
  const child = (data) => ({ name: 'child', queueName: queue.name, data });
  const { job } = await flows().add({ name: 'parent', queueName: queue.name, children: [child(1), child(2)] });
  await until(async () => (await job.getState()) === 'completed');
  assert.deepEqual(done, ['child', 'child', 'parent']);
  assert.deepEqual((await queue.getJob(job.id)).returnvalue, [1, 2]);
});

bull('a failed child fails its parent where it was asked to', async ({ queue, worker, flows }) => {
  worker(async () => {
    throw new Error('no');
  });
  const children = [{ name: 'child', queueName: queue.name, opts: { failParentOnFailure: true } }];
  const { job } = await flows().add({ name: 'parent', queueName: queue.name, children });
  await until(async () => (await job.getState()) === 'failed');
  assert.match((await queue.getJob(job.id)).failedReason, /^child bull:.* failed$/);
});

bull('a job that runs waits for children that it adds, and goes on with their results', async ({ queue, worker }) => {
  worker(async (job, token) => {
    if (job.name === 'child') return job.data;
    if (job.data.step === undefined) {
      const parent = { id: job.id, queue: job.queueQualifiedName };
      for (const n of [1, 2]) await queue.add('child', n, { parent, removeOnComplete: true });
      await job.updateData({ step: 'wait' });
    }
    if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();
    return Object.values(await job.getChildrenValues()).sort();
  });
  const job = await queue.add('parent', {});
  await until(async () => (await job.getState()) === 'completed');
  const found = await queue.getJob(job.id);
  assert.deepEqual([found.returnvalue, found.data], [[1, 2], { step: 'wait' }]);
});

bull('a flow takes a job that is there as a child, and one that is done does not hold it up', async ({ queue, worker, flows }) => {
  await queue.add('first', 1, { jobId: 'a', delay: 86_400_000 });
  worker(async (job) => job.data);
  const flow = (name) => flows().add({ name, queueName: queue.name, data: 2, children: [{ name: 'again', queueName: queue.name, data: 3, opts: { jobId: 'a' } }] });
  for (const name of ['waits', 'goes on']) {
    const { job } = await flow(name);
    if (name === 'waits') await (await queue.getJob('a')).promote();
    await until(async () => (await job.getState()) === 'completed');
    assert.deepEqual(Object.values(await job.getChildrenValues()), [1]);
  }
});

bull('a child that leaves its parent does not hold it up', async ({ queue, flows }) => {
  const children = [{ name: 'child', queueName: queue.name, data: {} }];
  const { job, children: [child] } = await flows().add({ name: 'parent', queueName: queue.name, children });
  assert.equal(await job.getState(), 'waiting-children');
  assert.equal(await child.job.removeChildDependency(), true);
  await until(async () => (await job.getState()) === 'waiting');
  assert.equal((await queue.getJob(child.job.id)).parentKey, undefined);
});

bull('a group runs one job at a time, in order', async ({ queue, worker }) => {
  const done = [];
  let running = 0;
  const run = async ({ data }) => {
    assert.equal(++running, 1);
    await sleep(5);
    done.push(data);
    running--;
  };
  worker(run, { concurrency: 3 });
  worker(run, { concurrency: 3 });
  const all = Array.from({ length: 10 }, (_, n) => n);
  await queue.addBulk(all.map((data) => ({ name: 'a', data, opts: { group: { id: 'ann' } } })));
  await until(() => done.length === 10);
  assert.deepEqual(done, all);
});

bull('what a job does not keep is gone, and its result is still told', async ({ queue, worker, events }) => {
  const told = await events();
  worker(async () => 'ok');
  const job = await queue.add('a', {}, { removeOnComplete: true });
  assert.equal(await job.waitUntilFinished(told), 'ok');
  assert.equal(await queue.getJob(job.id), undefined);
  for (let n = 0; n < 5; n++) await queue.add('b', {}, { removeOnComplete: 2 });
  await until(async () => (await queue.getJobCountByTypes('waiting', 'active')) === 0);
  assert.equal(await queue.getCompletedCount(), 2);
});

bull('pause, resume, drain, clean, retryJobs, obliterate', async ({ queue, worker }) => {
  await queue.pause();
  const done = [];
  worker(async (job) => {
    done.push(job.name);
    if (job.name === 'bad' && job.attemptsMade === 0) throw new Error('no');
  });
  await queue.add('bad', {});
  await sleep(50);
  assert.deepEqual(done, []);
  await queue.resume();
  await until(async () => (await queue.getFailedCount()) === 1);
  await queue.retryJobs();
  await until(async () => (await queue.getCompletedCount()) === 1);
  assert.equal((await queue.clean(0, 0, 'completed')).length, 1);
  await queue.pause();
  await queue.add('a', {});
  await queue.add('b', {}, { delay: 1e6 });
  await queue.drain(true);
  assert.equal(await queue.count(), 0);
  await queue.obliterate();
  assert.equal(await queue.isPaused(), false);
});

bull('progress, data and logs stay with a job', async ({ queue, worker, events }) => {
  const told = await events();
  const progress = [];
  told.on('progress', ({ data }) => progress.push(data));
  worker(async (job) => {
    await job.updateProgress({ at: 1 });
    await job.updateData({ step: 2 });
    await job.log('a row');
    if (job.attemptsMade === 0) throw new Error('again');
    return job.data.step;
  });
  const job = await queue.add('a', { step: 1 }, { attempts: 2 });
  assert.equal(await job.waitUntilFinished(told), 2);
  const found = await queue.getJob(job.id);
  assert.deepEqual([found.progress, found.data], [{ at: 1 }, { step: 2 }]);
  assert.deepEqual(await queue.getJobLogs(job.id), { logs: ['a row', 'a row'], count: 2 });
  assert.deepEqual(progress, [{ at: 1 }, { at: 1 }]);
});

bull('a scheduler goes on by itself', async ({ queue, worker }) => {
  const done = [];
  worker(async (job) => done.push(job.repeatJobKey));
  await queue.upsertJobScheduler('tick', { every: 50 }, { name: 'beat' });
  await until(() => done.length === 3);
  assert.deepEqual(new Set(done), new Set(['tick']));
  assert.equal((await queue.getJobSchedulers())[0].every, 50);
  await queue.removeJobScheduler('tick');
  assert.equal(await queue.getJobSchedulersCount(), 0);
});

bull('global concurrency and rate hold for all workers', async ({ queue, worker }) => {
  await queue.setGlobalConcurrency(1);
  let running = 0;
  let most = 0;
  let done = 0;
  const run = async () => {
    most = Math.max(most, ++running);
    await sleep(10);
    running--;
    done++;
  };
  worker(run, { concurrency: 5 });
  worker(run, { concurrency: 5 });
  await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'a', data: {} })));
  await until(() => done === 10);
  assert.equal(most, 1);
  await queue.removeGlobalConcurrency();
  await queue.setGlobalRateLimit(2, 60_000);
  await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'a', data: {} })));
  await until(() => done === 12);
  await sleep(50);
  assert.equal(done, 12);
});

bull('the job of a worker that is gone comes back when its lease ends, and one that kills workers fails', async ({ queue, worker }) => {
  const lost = worker(null, { lockDuration: 100 });
  const job = await queue.add('a', {});
  assert.equal((await lost.getNextJob('w1')).id, job.id);
  const stalled = [];
  const next = worker(async () => 'ok', { stalledInterval: 50 });
  next.on('stalled', (id) => stalled.push(id));
  await until(async () => (await job.getState()) === 'completed');
  await until(() => stalled.length > 0);
  assert.deepEqual(stalled, [job.id]);
});

bull('how often a job has stalled goes along with a retry, and fails it only when it stalls again', async ({ queue, worker }) => {
  const lost = worker(null, { lockDuration: 100 });
  const job = await queue.add('a', {});
  await lost.getNextJob('w1');
  const counts = [];
  const next = worker(async ({ stalledCounter }) => void counts.push(stalledCounter), { maxStalledCount: 0 });
  const [failed, error] = await once(next, 'failed');
  assert.deepEqual([failed.id, error.message], [job.id, 'job stalled more than allowable limit']);
  await (await queue.getJob(job.id)).retry();
  await until(async () => (await job.getState()) === 'completed');
  assert.deepEqual([counts, (await queue.getJob(job.id)).stalledCounter], [[1], 1]);
});

bull('the wrong token settles nothing', async ({ queue, worker }) => {
  const one = worker(null);
  await queue.add('a', {});
  const job = await one.getNextJob('right');
  await assert.rejects(job.moveToCompleted('x', 'wrong', false), /Lock mismatch for job 1. Cmd moveToFinished from active/);
  await job.moveToCompleted('x', 'right', false);
  await assert.rejects(job.moveToCompleted('x', 'right', false), /Missing lock for job 1. moveToFinished/);
});

test('a connection that is cut does not stop a worker, and each job is done', async () => {
  const proxy = await Proxy.start();
  const to = { host: '127.0.0.1', port: Number(new URL(proxy.url).port), retryStrategy: () => 20 };
  const factory = createDqBackend();
  const name = newBullName();
  const queue = new Queue(name, { connection }, factory);
  const done = new Map();
  const worker = new Worker(name, async ({ id }) => void done.set(id, (done.get(id) ?? 0) + 1), { connection: to, concurrency: 3 }, factory);
  worker.on('error', () => {});
  const loss = setInterval(() => proxy.cut(), 200);
  try {
    for (let n = 0; n < 200; n++) await queue.add('a', n);
    proxy.lose('DQ.FETCH', 5);
    proxy.refuse();
    await until(async () => (await queue.getCompletedCount()) === 200);
  } finally {
    clearInterval(loss);
    await worker.close();
    await queue.close();
    proxy.close();
  }
  assert.equal(done.size, 200);
  assert.ok([...done.values()].every((times) => times === 1));
});

for (const [library, connect] of Object.entries(LIBRARIES)) {
  test(`${library}: a client of the application serves queues and workers, and stays open`, async () => {
    const client = await connect(url);
    const factory = createDqBackend({ connection: client, prefix: 'shop' });
    const name = newBullName();
    const queue = new Queue(name, { connection: {} }, factory);
    const told = new QueueEvents(name, { connection: {} }, factory);
    await told.waitUntilReady();
    const worker = new Worker(name, async ({ data }) => data, { connection: {} }, factory);
    assert.equal(queue.qualifiedName, `shop:${name}`);
    const job = await queue.add('a', { n: 1 });
    assert.deepEqual(await job.waitUntilFinished(told), { n: 1 });
    assert.equal((await queue.getWorkers()).length, 1);
    for (const one of [worker, told, queue]) await one.close();
    assert.equal(String(await (client.callBuffer ? client.callBuffer('PING') : client.sendCommand(['PING']))), 'PONG');
    await close(client);
  });
}

test('keyPrefix of ioredis is refused', async () => {
  const client = new Redis(url, { keyPrefix: 'a:' });
  assert.throws(() => new Queue('x', { connection: client }, createDqBackend()), /keyPrefix/);
  await once(client, 'ready');
  client.disconnect();
});
