/** Families, on one server and in a cluster. */

import assert from 'node:assert/strict';

import { Family, Worker, slot } from 'dq-queue';
import { CLUSTERS, close, each, eachCluster, newName, until, working } from './setup.mjs';

each('a family on one server sends, delivers in order, and adds up', async ({ client }) => {
  const family = new Family(client, newName(), 8);
  await family.ensure({ retain: 60_000 });
  for (let n = 0; n < 5; n++) for (const group of ['ann', 'bob', 'cat']) await family.send(`${n}`, { group });
  assert.match(await family.send('alone'), /-/);
  assert.equal(await family.send('x', { id: 'mine' }), 'mine');
  assert.equal(await family.send('x', { id: 'mine' }), null);
  const before = await family.info();
  assert.deepEqual([before.queues, before.ready + before.blocked, before.blockedClients], [8, 17, 0]);
  const seen = { ann: '', bob: '', cat: '' };
  const worker = new Worker(family, ({ group, text, queue }) => {
    if (group) seen[group] += text;
    assert.ok(queue.startsWith(`${family.name}:{`));
    return 'ok';
  }, { concurrency: 3, block: 50 });
  await working(worker, () => until(async () => (await family.info()).finished === 17));
  assert.deepEqual(seen, { ann: '01234', bob: '01234', cat: '01234' });
  family.close();
});

each('a family grows, and the order of its groups holds', async ({ client }) => {
  const old = new Family(client, newName(), 2);
  const grown = new Family(client, old.name, 4, { grownFrom: 2 });
  const groups = Array.from({ length: 8 }, (_, n) => `g${n}`);
  const moving = groups.filter((group) => old.queue(group).key !== grown.queue(group).key);
  assert.ok(moving.length > 0 && moving.length < groups.length);
  for (const group of groups) await old.send('1', { group });
  for (const group of groups) assert.notEqual(await grown.send('2', { group, id: group }), null);
  // All new messages are behind the earlier ones of their groups, and a taken id stays taken.
  for (const group of groups) {
    assert.equal((await old.queue(group).get(group)).group, group);
    assert.equal(await grown.send('2', { group, id: group }), null);
  }
  const worker = new Worker(grown, () => {}, { concurrency: 4, block: 50 });
  await working(worker, () => until(async () => (await grown.info()).ready + (await grown.info()).blocked === 0));
  await grown.send('3', { group: moving[0], id: 'new' });
  assert.equal((await grown.queue(moving[0]).get('new')).state, 'ready');
  for (const family of [old, grown]) family.close();
});

each('a family has a name without braces, and partitions that are a power of two', async ({ client }) => {
  for (const name of ['', 'a{b', 'a}b']) assert.throws(() => new Family(client, name, 4), RangeError);
  assert.throws(() => new Family(client, 'f', 8, { grownFrom: 3 }), RangeError);
  for (const partitions of [0, 3, 32_768]) assert.throws(() => new Family(client, 'f', partitions), RangeError);
});

eachCluster('messages go to the nodes of their groups and come from all of them', async ({ family }) => {
  await family.ensure({ retain: 60_000 });
  assert.equal((await family.info()).queues, 16);
  const groups = Array.from({ length: 30 }, (_, n) => `g${n}`);
  const seen = Object.fromEntries(groups.map((group) => [group, '']));
  const worker = new Worker(family, ({ group, text }) => {
    seen[group] += text;
  }, { concurrency: 5, block: 300 });
  await working(worker, async () => {
    for (let n = 0; n < 3; n++) await Promise.all(groups.map((group) => family.send(String(n), { group })));
    await until(async () => (await family.info()).finished === 90);
    // Each node has one waiting NFETCH, regardless of the number of partitions.
    await until(async () => (await family.info()).blockedClients === 3);
  });
  assert.deepEqual(new Set(Object.values(seen)), new Set(['012']));
  const { redelivered } = await family.queue('g0').info();
  assert.equal(redelivered, 0);
});

eachCluster('a worker with room for one takes one, and gives back without blame', async ({ family }) => {
  await family.ensure();
  let running = 0;
  let most = 0;
  const worker = new Worker(family, async ({ attempt }) => {
    assert.equal(attempt, 1);
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
  }, { block: 300 });
  await working(worker, async () => {
    await until(async () => (await family.info()).blockedClients === 3);
    await Promise.all(Array.from({ length: 60 }, (_, n) => family.send('x', { id: `m${n}` })));
    await until(async () => (await family.info()).ready + (await family.info()).running === 0);
  });
  assert.equal(most, 1);
});

eachCluster('a queue of a cluster has its worker, its waits and its fetches', async ({ family }) => {
  const queue = family.queue('ann');
  await queue.create({ retain: 60_000 });
  await working(new Worker(queue, ({ text }) => text, { block: 300 }), async () => {
    await queue.send('x', { id: 'a' });
    assert.deepEqual(await queue.wait('a', 10_000), { state: 'finished', result: 'x' });
  });
  assert.deepEqual(await queue.fetch({ block: 1 }), []);
});

/** Moves a slot with its keys, as redis-cli --cluster reshard does. */
async function moveSlot(number) {
  const admin = await CLUSTERS['ioredis, RESP2']();
  await until(() => admin.status === 'ready');
  const nodes = admin.nodes('master');
  const ids = await Promise.all(nodes.map((node) => node.cluster('MYID')));
  const source = nodes.findIndex(({ options }) => admin.slots[number][0] === `${options.host}:${options.port}`);
  const target = (source + 1) % nodes.length;
  await nodes[target].cluster('SETSLOT', number, 'IMPORTING', ids[source]);
  await nodes[source].cluster('SETSLOT', number, 'MIGRATING', ids[target]);
  const keys = await nodes[source].cluster('GETKEYSINSLOT', number, 100);
  const { host, port } = nodes[target].options;
  if (keys.length) await nodes[source].call('MIGRATE', host, port, '', 0, 5000, 'KEYS', ...keys);
  for (const at of [target, source, ...nodes.keys()]) await nodes[at].cluster('SETSLOT', number, 'NODE', ids[target]);
  await close(admin);
}

eachCluster('queues move to another node while messages flow', async ({ family }) => {
  await family.ensure({ retain: 60_000 });
  const queue = family.queue('ann');
  let handled = '';
  const worker = new Worker(family, ({ text }) => {
    handled += text;
  }, { block: 1000 });
  const single = new Worker(queue, ({ text }) => {
    handled += text;
  }, { block: 200 });
  for (const one of [worker, single]) {
    await working(one, async () => {
      await family.send('1', { group: 'ann' });
      await until(async () => handled === '1');
      await moveSlot(slot(queue.key));
      await family.send('2', { group: 'ann' });
      await until(async () => handled === '12');
    });
    handled = '';
  }
  // Calls that wait find the queue, too.
  assert.deepEqual(await queue.fetch({ block: 1 }), []);
  await moveSlot(slot(queue.key));
  assert.deepEqual(await queue.fetch({ block: 1 }), []);
  const { redelivered, timeouts, finished } = await queue.info();
  assert.deepEqual([redelivered, timeouts, finished], [0, 0, 4]);
});

eachCluster('a node that joins is found when slots move', async ({ family }) => {
  await family.ensure();
  const { server } = family;
  const nodes = server.nodes.bind(server);
  const [joining] = await nodes();
  let joined = false;
  server.nodes = async () => (await nodes()).filter(({ name }) => joined || name !== joining.name);
  let handled = 0;
  const worker = new Worker(family, () => void handled++, { concurrency: 32, block: 2000 });
  await working(worker, async () => {
    await Promise.all(family.queues().map((queue) => queue.send('x')));
    await until(async () => {
      const { ready, running } = await family.info();
      return ready + running === 0;
    });
    assert.ok(handled < 16, 'the partitions of the unknown node are waiting');
    joined = true;
    for (const { key } of family.queues().slice(0, 2)) await moveSlot(slot(key));
    await until(() => handled === 16);
  });
});
