/** Handlers that end in odd ways: the message fails with its error, and the worker continues. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue, Reject, Retry, Snooze, Worker } from 'dq-queue';
import { close, each, LIBRARIES, newName, until, url, working } from './setup.mjs';

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const hostile = new Proxy(Object.create(null), {
  get: () => assert.fail('nothing may be asked of it'),
  getPrototypeOf: () => {
    throw new Error('no prototype');
  },
});
const withGetter = (name) => Object.defineProperty(new Error('plain'), name, {
  get: () => {
    throw new Error('no such thing');
  },
});
const refusing = { toString: () => { throw new Error('no text'); }, [Symbol.toPrimitive]: () => { throw new Error('no text'); } };

/** Values that are thrown, and the texts that are kept of them. */
const THROWN = {
  undefined: [undefined, /^undefined$/],
  null: [null, /^null$/],
  'a number': [42, /^42$/],
  'an empty text': ['', null],
  'a symbol': [Symbol('why'), /^Symbol\(why\)$/],
  'a function': [function why() {}, /why/],
  'an object without prototype': [Object.create(null), /null prototype/],
  'an object': [{ code: 402 }, /402/],
  'an object whose text throws': [refusing, /toString/],
  'a revoked proxy': [revoked(), /proxy/i],
  'a proxy that throws': [hostile, /\{\}/],
  'an error whose message throws': [withGetter('message'), /Error/],
  'an error whose name throws': [withGetter('name'), /^plain$/],
  'an error with a symbol for a name': [Object.assign(new Error('plain'), { name: Symbol('x') }), /^plain$/],
  'an error with a number for a message': [Object.assign(new Error(), { message: 7 }), /Error/],
  'a Retry with a delay that is none': [new Retry('later', { delay: NaN }), /^later$/],
  'a Retry with a negative delay': [new Retry('later', { delay: -5 }), /^later$/],
  'a Retry with a fraction': [new Retry('later', { delay: 0.5 }), /^later$/],
  'a Snooze with a text for a delay': [new Snooze('later', { delay: 'soon' }), /^later$/],
};

const quick = (queue, handlers, options) => new Worker(queue, handlers, { block: 50, ...options });

each('whatever a handler throws, its message fails and the next one runs', async ({ queue }) => {
  await queue.create({ retries: -1, backoff: ['FIXED', 3_600_000] });
  const names = Object.keys(THROWN);
  for (const name of [...names, 'the next']) await queue.send('x', { id: name });
  const failed = [];
  const worker = quick(queue, async ({ id, attempt }) => {
    if (id in THROWN && attempt < 2 && !failed.includes(id)) throw THROWN[id][0];
  });
  worker.on('failed', ({ id }) => failed.push(id));
  await working(worker, () => until(async () => (await queue.get('the next')) === null));
  assert.deepEqual(failed, names);
  for (const name of names.filter((one) => !one.startsWith('a Snooze') && !one.includes('fraction'))) {
    const { state, error, failures } = await queue.get(name);
    assert.deepEqual([name, state, failures], [name, 'retry', 1]);
    if (THROWN[name][1] === null) assert.equal(error, null, name);
    else assert.match(error, THROWN[name][1], name);
  }
  assert.deepEqual([await queue.get('a Snooze with a text for a delay'), await queue.len('running')], [null, 0]);
});

each('what a handler returns and has no JSON is a failure, and nothing else is told of it', async ({ queue }) => {
  await queue.create({ retries: 0 });
  const circular = {};
  circular.self = circular;
  const odd = { circular, bigint: 5n, 'throws as JSON': { toJSON: () => { throw null; } } };
  for (const id of [...Object.keys(odd), 'a symbol', 'a function', 'a proxy']) await queue.send('x', { id });
  const told = [];
  const worker = quick(queue, ({ id }) => {
    if (id === 'a symbol') return Symbol('x');
    if (id === 'a function') return () => {};
    return id === 'a proxy' ? revoked() : odd[id];
  });
  worker.on('done', ({ id }) => told.push(id));
  worker.on('failed', ({ id }) => told.push(`not ${id}`));
  await working(worker, () => until(async () => told.length === 6 && (await queue.len()) === 0));
  assert.deepEqual(told, ['not circular', 'not bigint', 'not throws as JSON', 'a symbol', 'a function', 'not a proxy']);
  assert.match((await queue.get('circular')).error, /^TypeError: .*circular/);
});

each('a handler whose promise is odd is a failure', async ({ queue }) => {
  await queue.create({ retries: 0 });
  const odd = {
    getter: () => Object.defineProperty({}, 'then', { get: () => { throw new Error('no then'); } }),
    rejects: () => ({ then: (_, reject) => reject(Symbol('no')) }),
    twice: () => ({ then: (resolve, reject) => { resolve('first'); reject(new Error('second')); } }),
  };
  for (const id of Object.keys(odd)) await queue.send('x', { id, retain: 60_000 });
  await working(quick(queue, ({ id }) => odd[id]()), () => until(async () => (await queue.len()) === 0));
  const ended = await Promise.all(Object.keys(odd).map(async (id) => (await queue.get(id))?.error ?? (await queue.get(id))?.result));
  assert.deepEqual(ended, ['Error: no then', 'Symbol(no)', 'first']);
});

each('a handler that does not heed its time limit leaves its place to others after grace', async ({ queue }) => {
  await queue.send('x', { id: 'hangs', retries: 0 });
  await queue.send('x', { id: 'next' });
  const worker = quick(queue, ({ id }) => (id === 'hangs' ? new Promise(() => {}) : undefined), { lease: 300, timeLimit: 50, grace: 20 });
  await working(worker, () => until(async () => (await queue.get('next')) === null && (await queue.len('dead')) === 1));
  assert.equal((await queue.get('hangs')).timeouts, 1);
});

/** Runs a program in a process of its own, with the queue `queue` and the client `redis`. Returns its code and its words. */
async function program(name, code, { killed = false } = {}) {
  const text = `
    import { setTimeout as sleep } from 'node:timers/promises';
    import { EventEmitter } from 'node:events';
    import { Queue, Worker } from 'dq-queue';
    import { Redis } from 'ioredis';
    const redis = new Redis('${url}');
    const queue = new Queue(redis, '${name}');
    ${code}
    redis.disconnect();
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { cwd: import.meta.dirname });
  const said = { out: '', err: '' };
  child.stdout.on('data', (data) => (said.out += data));
  child.stderr.on('data', (data) => (said.err += data));
  const [exit] = await once(child, 'close');
  if (!killed) assert.equal(exit, 0, said.err);
  return { exit, ...said };
}

async function withQueue(run) {
  const client = await LIBRARIES['ioredis, RESP3'](url);
  try {
    await run(new Queue(client, newName()));
  } finally {
    await close(client);
  }
}

test('an error that a handler lets go of fails its message alone, and the worker lives', () => withQueue(async (queue) => {
  await queue.create({ retries: 0, retain: 60_000 });
  const kinds = ['rejection', 'late rejection', 'timer', 'tick', 'listener', 'text'];
  for (const id of [...kinds, 'innocent']) await queue.send('x', { id });
  const { out } = await program(queue.key, `
    const odd = {
      rejection: () => { Promise.reject(new Error('rejection')); return sleep(200); },
      'late rejection': async () => { new Promise((_, no) => setTimeout(no, 20, new Error('late rejection'))); await sleep(200); },
      timer: () => { setTimeout(() => { throw new Error('timer'); }, 10); return new Promise(() => {}); },
      tick: () => { process.nextTick(() => { throw new Error('tick'); }); return new Promise(() => {}); },
      listener: async () => { const one = new EventEmitter(); setTimeout(() => one.emit('error', new Error('listener')), 10); await sleep(200); },
      text: async () => { setTimeout(() => { throw 'text'; }, 10); await sleep(200); },
      innocent: () => sleep(300).then(() => 'untouched'),
    };
    const worker = new Worker(queue, ({ id }) => odd[id](), { block: 50, concurrency: 10 });
    let ended = 0;
    for (const event of ['done', 'failed']) worker.on(event, ({ id }) => { console.log(event, id); if (++ended === 7) worker.stop(); });
    await worker.run();
    console.log(process.listenerCount('uncaughtException'));
  `);
  for (const kind of kinds) {
    const { state, error } = await queue.get(kind);
    assert.deepEqual([kind, state], [kind, 'dead']);
    assert.ok(error.endsWith(kind), error);
  }
  assert.deepEqual([(await queue.get('innocent')).result, out.split('\n').slice(-3)], ['untouched', ['done innocent', '0', '']]);
}));

test('an error that a handler lets go of after its end is told as a warning', () => withQueue(async (queue) => {
  await queue.send('x');
  const late = "new Worker(queue, () => { setTimeout(() => { throw new Error('too late'); }, 100); }, { block: 50 })";
  const told = await program(queue.key, `
    const worker = ${late};
    worker.on('warning', (error) => { console.log(error.message); worker.stop(); });
    await worker.run();
  `);
  assert.match(told.out, /handler that has ended.*Error: too late/);
  await queue.send('x');
  const untold = await program(queue.key, `
    const worker = ${late};
    process.on('warning', () => worker.stop());
    await worker.run();
  `);
  assert.match(untold.err, /handler that has ended.*Error: too late/);
}));

test('an error that no handler lets go of ends the process, as it does without a worker', () => withQueue(async (queue) => {
  for (const throwing of ["setTimeout(() => { throw new Error('mine'); }, 50);", "setTimeout(() => Promise.reject(new Error('mine')), 50);"]) {
    const { exit, err } = await program(queue.key, `${throwing}\nawait new Worker(queue, () => {}, { block: 50 }).run();`, { killed: true });
    assert.equal(exit, 1, err);
    assert.match(err, /Error: mine/);
  }
  const caught = await program(queue.key, `
    const worker = new Worker(queue, () => {}, { block: 50 });
    process.on('uncaughtException', (error) => { console.log('mine', error.message); worker.stop(); });
    setTimeout(() => { throw new Error('caught'); }, 50);
    await worker.run();
  `);
  assert.equal(caught.out, 'mine caught\n');
}));

test('a message that kills its worker is given up after three of them, with and without a limit of retries', () => withQueue(async (queue) => {
  for (const [retries, kills] of [[-1, 3], [2, 3]]) {
    const id = `killer ${retries}`;
    await queue.send('x', { id, retries });
    for (let n = 0; n < kills; n++) {
      const { exit, out } = await program(queue.key, `
        await new Worker(queue, ({ attempt }) => { console.log(attempt); process.exit(7); }, { lease: 100, block: 50 }).run();
      `, { killed: true });
      assert.deepEqual([exit, out], [7, `${n + 1}\n`]);
      await until(async () => (await queue.get(id)).timeouts === n + 1);
    }
    await queue.send('x', { id: 'next' });
    const ran = [];
    await working(quick(queue, ({ id }) => void ran.push(id)), () => until(async () => (await queue.get('next')) === null));
    const { state, error, timeouts } = await queue.get(id);
    assert.deepEqual([ran, state, timeouts], [['next'], 'dead', 3]);
    if (retries === -1) assert.match(error, /given up: 3 workers were lost/);
  }
}));

each('messages that only fail are not given up', async ({ queue }) => {
  await queue.create({ retries: -1 });
  await queue.send('x', { id: 'a' });
  let attempts = 0;
  await working(quick(queue, () => {
    if (++attempts < 8) throw new Error('again');
  }), () => until(async () => (await queue.get('a')) === null));
  assert.equal(attempts, 8);
});

test('a result that the server refuses makes its message dead, and the worker goes on', () => withQueue(async (queue) => {
  const admin = queue.client;
  const user = newName().replaceAll(':', '-');
  await admin.call('ACL', 'SETUSER', user, 'on', '>pw', '~*', '+@all', '-dq.ack');
  await queue.create({ retries: 0 });
  const limited = await LIBRARIES['ioredis, RESP3'](Object.assign(new URL(url), { username: user, password: 'pw' }).href);
  // A fetch may not ack with a result either.
  const duplicate = limited.duplicate.bind(limited);
  limited.duplicate = (options) => {
    const own = duplicate(options);
    const call = own.callBuffer.bind(own);
    const refusal = Object.assign(new Error('ERR no such results'), { constructor: { name: 'ReplyError' } });
    own.callBuffer = (...words) => (words.flat().includes('RESULTS') ? Promise.reject(refusal) : call(...words));
    return own;
  };
  const worker = quick(new Queue(limited, queue.key), async ({ text }) => {
    await sleep(Number(text));
    return 'result';
  }, { concurrency: 2 });
  worker.on('warning', () => {});
  await working(worker, async () => {
    // The first is acked by a command of its own, because a fetch waits meanwhile, and the second by the fetch that
    // follows.
    for (const [id, ms] of [['slow', '100'], ['fast', '0']]) {
      await queue.send(ms, { id });
      await until(async () => (await queue.get(id)).state === 'dead');
      assert.match((await queue.get(id)).error, /^the result was refused: NOPERM/);
    }
  });
  await admin.call('ACL', 'DELUSER', user);
  await close(limited);
}));
