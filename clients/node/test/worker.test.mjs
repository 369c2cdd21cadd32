/** Workers: handlers, outcomes, leases, stopping, and connections that break. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Redis } from 'ioredis';

import { CommandError, Queue, Snooze, Worker } from 'dq-queue';
import { close, each, newName, Proxy, until, url, working, LIBRARIES } from './setup.mjs';

/** A worker whose fetches do not wait for long, so that it stops soon. */
const quick = (queue, handlers, options) => new Worker(queue, handlers, { block: 50, ...options });

/** A promise that a test settles. */
function promise() {
  let settle;
  return Object.assign(new Promise((resolve) => (settle = resolve)), { resolve: (value) => settle(value) });
}

each('handlers are chosen by type, and what they return is kept', async ({ queue }) => {
  await queue.create({ retain: 60_000, retries: 0 });
  await queue.add('sum', [1, 2], { id: 'sum' });
  await queue.add('say', 'hello', { id: 'say' });
  await queue.send('x', { id: 'plain' });
  await queue.send('x', { id: 'strange', type: 'strange' });
  await queue.send('', { id: 'bytes', type: 'bytes' });
  const worker = quick(queue, {
    sum: ({ data }) => ({ sum: data.reduce((a, b) => a + b) }),
    say: async ({ data }) => data,
    bytes: () => Buffer.from('ok'),
    '*': ({ type }) => {
      if (type === 'strange') throw new Error('never heard of it');
    },
  });
  const told = [];
  worker.on('done', ({ id }, result) => told.push([id, result]));
  worker.on('failed', ({ id }, error) => told.push([id, error.message]));
  await working(worker, () => until(async () => told.length === 5));
  const results = await Promise.all(['sum', 'say', 'plain', 'bytes'].map(async (id) => (await queue.get(id)).result));
  assert.deepEqual(results, ['{"sum":3}', 'hello', null, 'ok']);
  assert.equal((await queue.get('strange')).error, 'Error: never heard of it');
  assert.deepEqual(told.map(([id]) => id), ['sum', 'say', 'plain', 'strange', 'bytes']);
});

each('a message without a result gets none from others that end with it', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  for (const id of ['told', 'plain', 'other']) await queue.send('x', { id });
  const go = promise();
  let running = 0;
  const worker = quick(queue, async ({ id }) => {
    running++;
    await go;
    return id === 'plain' ? undefined : id;
  }, { concurrency: 3 });
  await working(worker, async () => {
    await until(() => running === 3);
    go.resolve();
    await until(async () => (await queue.len('finished')) === 3);
  });
  const results = await Promise.all(['told', 'plain', 'other'].map(async (id) => (await queue.get(id)).result));
  assert.deepEqual(results, ['told', null, 'other']);
});

each('a message whose type has no handler fails', async ({ queue }) => {
  await queue.create({ retries: 0 });
  await queue.send('x', { id: 'a', type: 'strange' });
  await working(quick(queue, {}), () => until(async () => (await queue.len('dead')) === 1));
  assert.match((await queue.get('a')).error, /no handler for type "strange"/);
});

each('as many handlers run as concurrency says, and no message waits in the worker', async ({ queue }) => {
  await queue.sendMany(Array.from({ length: 10 }, (_, n) => String(n)));
  const go = promise();
  let running = 0;
  const worker = quick(queue, async () => {
    running++;
    await go;
  }, { concurrency: 4 });
  await working(worker, async () => {
    await until(() => running === 4);
    assert.deepEqual([await queue.len('running'), await queue.len('ready')], [4, 6]);
    go.resolve();
    await until(async () => (await queue.len()) === 0);
  });
  assert.equal(running, 10);
});

each('under load a round trip takes and acks a whole batch', async ({ client, queue }) => {
  const info = async () => String(await (client.callBuffer ? client.call('INFO', 'commandstats') : client.sendCommand(['INFO', 'commandstats'])));
  const calls = async (verb) => Number(new RegExp(`cmdstat_dq.${verb}:calls=(\\d+)`, 'i').exec(await info())?.[1] ?? 0);
  await queue.sendMany(Array.from({ length: 1000 }, (_, n) => String(n)));
  const before = [await calls('fetch'), await calls('ack')];
  const worker = quick(queue, async () => {}, { concurrency: 100 });
  await working(worker, () => until(async () => (await queue.len()) === 0));
  // The worker fetches ten full batches, and once more when the queue is empty.
  assert.ok((await calls('fetch')) - before[0] <= 13, 'fetches');
  assert.ok((await calls('ack')) - before[1] <= 3, 'acks');
});

each('acks do not wait for a fetch that waits', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  const go = promise();
  const worker = quick(queue, async () => {
    await go;
    return 'done';
  }, { concurrency: 2, block: 60_000 });
  const running = worker.run();
  await queue.send('x', { id: 'a' });
  const waiting = queue.wait('a', 20_000);
  await until(async () => (await queue.len('running')) === 1 && (await queue.info()).blockedClients === 1);
  go.resolve();
  assert.deepEqual(await waiting, { state: 'finished', result: 'done' });
  // The stop ends the fetch, which would wait for a minute.
  worker.stop();
  await queue.send('x', { id: 'b' });
  await running;
  assert.deepEqual([(await queue.get('b')).state, (await queue.get('b')).attempt], ['ready', 0]);
});

each('a heartbeat renews leases, and a note too', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  await queue.send('x', { id: 'a' });
  const go = promise();
  const worker = quick(queue, async (_message, { note }) => {
    assert.equal(await note('begun'), true);
    await go;
  }, { lease: 300 });
  await working(worker, async () => {
    await until(async () => (await queue.get('a')).note === 'begun');
    await queue.tick({ advance: 200 });
    await until(async () => (await queue.get('a')).leaseUntil === 500);
    await queue.tick({ advance: 299 });
    go.resolve();
    await until(async () => (await queue.len()) === 0);
  });
  assert.equal((await queue.info()).timeouts, 0);
});

each('a handler learns that its lease is lost, and is not acked', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  await queue.send('x', { id: 'a' });
  const lost = [];
  const worker = quick(queue, async (_message, { signal }) => {
    await once(signal, 'abort');
    return signal.reason.message;
  }, { lease: 150 });
  worker.on('lost', ({ id }) => lost.push(id));
  worker.on('done', () => lost.push('done'));
  await working(worker, async () => {
    await until(async () => (await queue.len('running')) === 1);
    await queue.cancel('a');
    await until(() => lost.length);
  });
  assert.deepEqual(lost, ['a']);
  assert.equal((await queue.get('a')).state, 'cancelled');
});

each('after the time limit the lease ends', async ({ queue }) => {
  await queue.create({ retries: 0 });
  await queue.send('x', { id: 'a' });
  let reason;
  const worker = quick(queue, async (_message, { signal }) => {
    await once(signal, 'abort');
    reason = signal.reason.message;
  }, { lease: 150, timeLimit: 100 });
  await working(worker, () => until(async () => (await queue.len('dead')) === 1));
  assert.equal(reason, 'the time limit is over');
  assert.equal((await queue.get('a')).timeouts, 1);
});

each('a snooze counts no attempt, and may pause the group', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  await queue.send('x', { id: 'a', group: 'partner' });
  let calls = 0;
  const worker = quick(queue, () => {
    if (++calls === 1) throw new Snooze('429', { pauseGroup: 30_000 });
    if (calls === 2) throw new Snooze('later', { delay: 500 });
  }, { block: 20 });
  await working(worker, async () => {
    await until(async () => (await queue.explain('a'))?.code === 'group-paused');
    assert.deepEqual([(await queue.get('a')).attempt, (await queue.get('a')).error], [0, '429']);
    await queue.tick({ advance: 30_000 });
    await until(async () => (await queue.get('a')).state === 'delayed');
    await queue.tick({ advance: 500 });
    await until(async () => (await queue.len()) === 0);
  });
  assert.equal(calls, 3);
});

each('a worker that stops lets its handlers finish, and acks them', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  await queue.sendMany(['1', '2', '3']);
  const go = promise();
  const abort = new AbortController();
  let begun = 0;
  const worker = quick(queue, async () => {
    begun++;
    await go;
    return 'in time';
  }, { concurrency: 2 });
  const running = worker.run({ signal: abort.signal });
  await until(() => begun === 2);
  abort.abort();
  go.resolve();
  await running;
  assert.deepEqual([await queue.len('finished'), await queue.len('ready'), await queue.len('running')], [2, 1, 0]);
  await assert.rejects(worker.run(), /runs once/);
});

each('what is not finished after grace is given back, and its handler is told', async ({ queue }) => {
  await queue.send('x', { id: 'a' });
  let begun, reason;
  const worker = quick(queue, async (_message, { signal }) => {
    begun = true;
    await once(signal, 'abort');
    reason = signal.reason.message;
    throw signal.reason;
  }, { grace: 10 });
  await working(worker, () => until(() => begun));
  assert.equal(reason, 'the worker stops');
  const { state, attempt, failures } = await queue.get('a');
  assert.deepEqual([state, attempt, failures], ['ready', 0, 0]);
});

each('an error that does not pass ends the worker', async ({ client, queue }) => {
  const text = new Queue(client, `${queue.key}:text`);
  await (client.callBuffer ? client.call('SET', text.key, 'x') : client.sendCommand(['SET', text.key, 'x']));
  await assert.rejects(quick(text, () => {}).run(), (error) => error instanceof CommandError && error.code === 'WRONGTYPE');
});

each('a worker takes settings that make sense', async ({ queue }) => {
  for (const options of [{ concurrency: 0 }, { lease: 0 }, { block: 0 }]) {
    assert.throws(() => quick(queue, () => {}, options), RangeError);
  }
});

for (const [library, connect] of Object.entries(LIBRARIES)) {
  test(`${library}: a lost reply costs no attempt`, async () => {
    const proxy = await Proxy.start();
    const [client, direct] = [await connect(proxy.url), await connect(url)];
    const queue = new Queue(client, newName());
    const seen = new Queue(direct, queue.key);
    await seen.create({ retain: 60_000 });
    const attempts = [];
    const worker = quick(queue, ({ attempt }) => {
      attempts.push(attempt);
      return 'ok';
    }, { block: 100 });
    let warnings = 0;
    worker.on('warning', () => warnings++);
    await working(worker, async () => {
      for (const command of ['DQ.FETCH', 'DQ.ACK']) {
        const lost = proxy.lost;
        proxy.lose(command);
        await seen.send('x');
        await until(async () => (await seen.len()) === 0 && (command === 'DQ.ACK' || proxy.lost > lost));
      }
      // All connections are lost for a while.
      proxy.cut();
      await seen.send('x');
      await until(async () => (await seen.len()) === 0);
    });
    assert.deepEqual(attempts, [1, 1, 1]);
    assert.ok(warnings > 0);
    const { timeouts, redelivered, acked } = await seen.info();
    assert.deepEqual([timeouts, redelivered, acked], [0, 0, 3]);
    proxy.close();
    for (const one of [client, direct]) await close(one);
  });

  test(`${library}: a send whose reply is lost adds one message`, async () => {
    const proxy = await Proxy.start();
    const client = await connect(proxy.url);
    const queue = new Queue(client, newName());
    proxy.lose('DQ.SEND', 2);
    // The connection after that is lost, too, in its handshake.
    proxy.refuse();
    const id = await queue.send('x');
    assert.equal(proxy.lost, 2);
    assert.deepEqual([await queue.len(), (await queue.get(id)).state], [1, 'ready']);
    proxy.close();
    await close(client);
  });
}

test('ioredis: acks do not wait until the client looks for its server again', async () => {
  const proxy = await Proxy.start();
  const client = new Redis(proxy.url, { retryStrategy: () => 3_600_000 });
  client.on('error', () => {});
  const direct = new Redis(url);
  const queue = new Queue(client, newName());
  const seen = new Queue(direct, queue.key);
  // The next fetch waits already when the handler ends, so the ack goes over the client.
  const worker = new Worker(queue, () => sleep(50), { block: 500, concurrency: 2 });
  await working(worker, async () => {
    for (let n = 0; n < 2; n++) {
      await seen.send('x');
      await until(async () => (await seen.len()) === 0);
      proxy.cut();
    }
  });
  proxy.close();
  for (const one of [client, direct]) await close(one);
});

test('SIGTERM stops a worker gracefully', async () => {
  const client = await LIBRARIES['ioredis, RESP3'](url);
  const queue = new Queue(client, newName());
  await queue.send('x', { id: 'a' });
  const program = `
    import { Queue, Worker } from 'dq-queue';
    import { Redis } from 'ioredis';
    const client = new Redis('${url}');
    const worker = new Worker(new Queue(client, '${queue.key}'), () => new Promise(() => {}), { grace: 50, block: 50 });
    const timer = setInterval(() => {}, 1000);
    await worker.run({ signals: true });
    clearInterval(timer);
    client.disconnect();
    console.log('stopped');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'], cwd: import.meta.dirname });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  await until(async () => (await queue.len('running')) === 1);
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  const { state, attempt } = await queue.get('a');
  await close(client);
  assert.deepEqual([code, said, state, attempt], [0, 'stopped\n', 'ready', 0]);
});
