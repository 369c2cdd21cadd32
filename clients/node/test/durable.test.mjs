/** A queue with `durable`. DQ_TEST_REPLICATED names a server with one replica. */

import assert from 'node:assert/strict';
import test from 'node:test';

import { ConnectionError, NotConfirmedError, Queue } from 'dq-queue';

import { close, CLUSTERS, LIBRARIES, newName, url } from './setup.mjs';

const replicated = process.env.DQ_TEST_REPLICATED;

async function withClient(connect, to, body) {
  const client = await connect(to);
  const queues = [];
  const queue = (durable, settings) => {
    queues.push(new Queue(client, newName(), { durable, ...settings }));
    return queues.at(-1);
  };
  try {
    await body(queue, client);
  } finally {
    for (const one of queues) one.close();
    await close(client);
  }
}

/** Puts other confirmations into the replies of the queue's connections, or breaks them (null) after the command. */
function rig(client, confirmations) {
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (...words) => {
    const own = duplicate(...words);
    const name = own.callBuffer ? 'callBuffer' : 'sendCommand';
    const send = own[name].bind(own);
    own[name] = async (...given) => {
      if (!/^WAIT/.test(String([given[0]].flat()[0])) || !confirmations.length) return send(...given);
      await send(...given).catch(() => {});
      const other = confirmations.shift();
      if (other === null) throw new ConnectionError('lost');
      return other;
    };
    return own;
  };
}

for (const [library, connect] of Object.entries(LIBRARIES)) {
  test(`${library}: what replicas have is confirmed`, () =>
    withClient(connect, replicated, async (make) => {
      const queue = make({ replicas: 1, inMemory: true });
      assert.equal(await queue.send('a', { id: 'a' }), 'a');
      assert.equal(await queue.send('a', { id: 'a' }), null);
      assert.equal((await queue.sendMany(['b', 'c'])).length, 2);
      assert.equal((await queue.groupPush({ g: 'x' }, ['g'])).group, 'x');
      const [a, b, c] = await queue.fetch({ count: 3 });
      assert.equal(await queue.ack(a), 1);
      assert.equal(await queue.nack(b), 1);
      assert.equal((await queue.ackSend(c, [{ payload: 'd' }])).length, 1);
    }));

  test(`${library}: a send that nobody confirms is an error that names its id`, () =>
    withClient(connect, url, async (make) => {
      const queue = make({ replicas: 1, inMemory: true, timeout: 10 }, { patience: 0 });
      const missing = await queue.send('a').then(assert.fail, (error) => error);
      assert.ok(missing instanceof NotConfirmedError, missing);
      assert.equal(missing.replicas, 0);
      assert.equal((await queue.get(missing.id)).payload.toString(), 'a');
      const lost = await queue.ack(await queue.fetch()).then(assert.fail, (error) => error);
      assert.deepEqual([lost.name, Number(lost.reply)], ['NotConfirmedError', 1]);
      assert.equal(await queue.len(), 0);
    }));

  test(`${library}: a send is repeated by its id until it is confirmed`, () =>
    withClient(connect, url, async (make, client) => {
      const confirmations = [[0, 0], null, [1, 0], [1, 1]];
      rig(client, confirmations);
      const queue = make({ replicas: 1 });
      assert.equal(await queue.send('a', { id: 'mine' }), 'mine');
      assert.deepEqual(confirmations, []);
      assert.deepEqual([await queue.len(), (await queue.info()).duplicates], [1, 3]);
    }));

  test(`${library}: what was settled before the connection broke is not confirmed by stale receipts`, () =>
    withClient(connect, url, async (make, client) => {
      rig(client, [[1, 0], null, [1, 0]]);
      const queue = make(true);
      await queue.send('a');
      await assert.rejects(queue.ack(await queue.fetch()), { name: 'NotConfirmedError', message: /stale/ });
    }));

  test(`${library}: commands at the same time share a confirmation`, () =>
    withClient(connect, url, async (make, client) => {
      const confirmations = [[1, 0], [1, 0], [1, 0]];
      rig(client, confirmations);
      const queue = make(true);
      const ids = await Promise.all(Array.from({ length: 100 }, (_, n) => queue.send('x', { id: `m${n}` })));
      assert.equal(new Set(ids).size, 100);
      assert.equal(await queue.len(), 100);
      assert.ok(confirmations.length >= 1);
    }));
}

test('a server that cannot confirm says so', () =>
  withClient(LIBRARIES['ioredis, RESP3'], url, async (make) => {
    // The server has no log, or is too old for WAITAOF.
    await assert.rejects(make(true).send('a'), { name: 'NotConfirmedError', message: /appendonly|Redis 7\.2/ });
    assert.throws(() => make({ inMemory: true }), TypeError);
  }));

test('an error reply is an error as ever', () =>
  withClient(LIBRARIES['node-redis, RESP3'], replicated, async (make) => {
    const queue = make({ replicas: 1, inMemory: true });
    await queue.create({ maxLen: 1 });
    await queue.send('a');
    await assert.rejects(queue.send('b'), { name: 'QueueFullError' });
  }));

for (const [library, connect] of Object.entries(CLUSTERS)) {
  test(`cluster, ${library}: a command is confirmed by the node of its key`, () =>
    withClient(connect, undefined, async (make) => {
      const queue = make({ replicas: 1, inMemory: true, timeout: 10 }, { patience: 0 });
      // No node has a replica, so each reports that no replica has confirmed.
      await assert.rejects(queue.send('a', { id: 'a' }), { name: 'NotConfirmedError', replicas: 0 });
      assert.equal(await queue.len(), 1);
    }));
}
