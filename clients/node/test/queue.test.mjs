/** Each method of a queue, its options and its reply, with each library and protocol. */

import assert from 'node:assert/strict';
import test from 'node:test';

import { CommandError, ConnectionError, Effects, Family, Message, Queue, QueueClosedError, QueueFullError, Worker } from 'dq-queue';
import { Redis } from 'ioredis';
import { close, each, newName, until, url, working } from './setup.mjs';

async function collected(generator) {
  const all = [];
  for await (const one of generator) all.push(one);
  return all;
}

each('a message comes back with everything that was sent', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  const id = await queue.send(Buffer.from([0, 255, 13, 10]), {
    id: 'a', delay: 5, group: 'g', score: 1.5, priority: -3, lease: 700, retries: 2, backoff: ['EXP', 100],
    ttl: 60_000, retain: 1000, type: 'mail', headers: { lang: 'zh', n: 7 }, batch: 'b',
  });
  assert.equal(id, 'a');
  assert.deepEqual(await queue.fetch(), []);
  await queue.tick({ advance: 5 });
  const [message] = await queue.fetch({ consumer: 'w', count: 10 });
  assert.ok(message instanceof Message);
  assert.deepEqual(message.payload, Buffer.from([0, 255, 13, 10]));
  const { queue: name, id: same, attempt, group, score, priority, type, headers, sentAt, dueAt, leaseUntil, retriesLeft, note, batch, after } = message;
  assert.deepEqual(
    { name, same, attempt, group, score, priority, type, headers, sentAt, dueAt, leaseUntil, retriesLeft, note, batch, after },
    {
      name: queue.key, same: 'a', attempt: 1, group: 'g', score: 1.5, priority: -3, type: 'mail', headers: { lang: 'zh', n: '7' },
      sentAt: 0, dueAt: 5, leaseUntil: 705, retriesLeft: 2, note: null, batch: 'b', after: null,
    },
  );
  const record = await queue.get('a');
  assert.equal(record.consumer, 'w');
  assert.equal(record.receipt, message.receipt);
  assert.deepEqual(record.payload, message.payload);
  assert.deepEqual(record.headers, headers);
  assert.equal(record.firstStartedAt, 5);
  assert.equal(record.error, null);
});

each('what does not apply is null', async ({ queue }) => {
  await queue.send('x', { id: 'a' });
  const { group, score, type, headers, note } = (await queue.fetch())[0];
  assert.deepEqual({ group, score, type, headers, note }, { group: null, score: null, type: null, headers: {}, note: null });
  assert.equal(await queue.get('nobody'), null);
  assert.equal(await queue.explain('nobody'), null);
});

each('ids are taken once, and made if none is given', async ({ queue }) => {
  assert.equal(await queue.send('x', { id: 'a' }), 'a');
  assert.equal(await queue.send('x', { id: 'a' }), null);
  assert.equal(await queue.send('y', { id: 'a', replace: true, at: new Date(Date.now() + 60_000) }), 'a');
  assert.equal((await queue.get('a')).state, 'delayed');
  assert.match(await queue.send('x'), /^[0-9a-f-]{36}$/);
  assert.equal(await queue.send('x', { group: 'nobody', ifGroup: true }), null);
  assert.equal(await queue.len(), 2);
});

each('data is sent as JSON with a type', async ({ queue }) => {
  await queue.add('welcome', { name: 'ann', at: [1, 2] }, { id: 'a' });
  const [message] = await queue.fetch();
  assert.equal(message.type, 'welcome');
  assert.deepEqual(message.data, { name: 'ann', at: [1, 2] });
  assert.equal(message.data, message.data);
});

each('many are sent at once, all or none', async ({ queue }) => {
  await queue.create({ maxLen: 3 });
  const ids = await queue.sendMany(['1', Buffer.from('2')], { group: 'g' });
  assert.equal(ids.length, 2);
  await assert.rejects(queue.sendMany(['3', '4']), (error) => error instanceof QueueFullError && error.code === 'QUEUEFULL');
  assert.equal(await queue.len(), 2);
  assert.deepEqual(await queue.sendMany(['3'], { group: 'nobody', ifGroup: true }), []);
});

each('a closed queue takes nothing until it is open again', async ({ queue }) => {
  await queue.create({ sends: 'OFF' });
  await assert.rejects(queue.send('1'), (error) => error instanceof QueueClosedError && error.code === 'QUEUECLOSED');
  assert.equal((await queue.info()).sends, 'OFF');
  await queue.alter({ sends: 'ON' });
  assert.equal(typeof (await queue.send('1')), 'string');
});

each('a group is read from JSON', async ({ queue }) => {
  const event = { user: 7, order: 42, no: 'e1', at: 2.5 };
  const given = { idPath: 'no', scorePath: 'at' };
  assert.deepEqual(await queue.groupPush(event, ['user', 'order'], given), { group: '7_42', id: 'e1' });
  assert.equal(await queue.groupPush(JSON.stringify(event), ['user', 'order'], given), null);
  assert.deepEqual(JSON.parse((await queue.get('e1')).payload), event);
});

each('a fetch acks, keeps results, and repeats a token', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', retain: 1000 });
  await queue.sendMany(['1', '2', '3']);
  const given = { consumer: 'w', token: 't', count: 2 };
  const [first, second] = await queue.fetch(given);
  assert.deepEqual((await queue.fetch(given)).map(({ receipt }) => receipt), [first.receipt, second.receipt]);
  const [third] = await queue.fetch({ ack: [first, second.receipt], results: ['one', ''], maxBytes: 1 });
  assert.equal(third.text, '3');
  assert.equal((await queue.get(first.id)).result, 'one');
  assert.equal(await queue.ack(third, { result: 'three' }), 1);
  assert.equal(await queue.ack([third, first]), 0);
  assert.deepEqual(await queue.wait(third.id, 10), { state: 'finished', result: 'three' });
});

each('a fetch that waits is woken, and holds nothing up', async ({ queue }) => {
  const fetching = queue.fetch({ block: 10_000 });
  await until(async () => (await queue.send('x')) && true);
  assert.equal((await fetching)[0].text, 'x');
  assert.deepEqual(await queue.fetch({ block: 1 }), []);
  const waiting = [queue.fetch({ block: 0 }), queue.fetch({ block: 0 })];
  await queue.sendMany(['1', '2']);
  const got = (await Promise.all(waiting)).flat();
  assert.deepEqual(got.map(({ text }) => text).sort(), ['1', '2']);
});

each('more calls wait than there are connections', async ({ client, queue }) => {
  const narrow = new Queue(client, queue.key, { waiting: 1 });
  const waiting = [1, 2, 3].map(() => narrow.fetch({ block: 0 }));
  await narrow.sendMany(['1', '2', '3']);
  assert.equal((await Promise.all(waiting)).flat().length, 3);
  narrow.close();
});

each('a fetch takes from the first of several queues that can give', async ({ client, queue }) => {
  const low = new Queue(client, `${queue.key}:low`);
  assert.deepEqual(await queue.fetchFirst([low], { block: 1 }), []);
  await low.send('x', { id: 'a' });
  const [first] = await queue.fetchFirst([low], { consumer: 'w' });
  assert.deepEqual([first.id, first.queue], ['a', low.key]);
  await queue.send('y');
  assert.equal((await queue.fetchFirst([low], { block: 1000 }))[0].queue, queue.key);
});

each('a wait ends with the message', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  await queue.send('1+1', { id: 'a' });
  const waiting = queue.wait('a', 10_000);
  const [message] = await queue.fetch();
  await queue.ack(message, { result: '2' });
  assert.deepEqual(await waiting, { state: 'finished', result: '2' });
  assert.equal(await queue.wait('nobody', 1), null);
});

each('a nack says what comes next', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', backoff: ['LINEAR', 50] });
  await queue.sendMany(['1', '2', '3', '4'], { group: 'g' });
  await queue.setGroup('g', { concurrency: 4, weight: 2, rate: { limit: 100, per: 1000 } });
  const [one, two, three, four] = await queue.fetch({ count: 4 });
  assert.equal(await queue.nack(one, { error: 'busy', note: 'row 5' }), 1);
  assert.equal(await queue.nack(two, { fatal: true, error: 'bad' }), 1);
  assert.equal(await queue.nack(three, { delay: 70 }), 1);
  assert.equal(await queue.nack([four, four], { silent: true, pause: ['GROUP', 500] }), 1);
  const states = await Promise.all([one, two, three, four].map(async ({ id }) => queue.get(id)));
  assert.deepEqual(states.map(({ state, dueAt, failures }) => [state, dueAt, failures]), [['retry', 50, 1], ['dead', 0, 1], ['retry', 70, 1], ['blocked', 0, 0]]);
  assert.deepEqual([states[0].error, states[0].note, states[1].reason], ['busy', 'row 5', 'rejected']);
  const [group] = await collected(queue.groups());
  assert.deepEqual([group.state, group.weight, group.concurrency, group.breaker, group.openUntil], ['paused', 2, 4, 'closed', null]);
});

each('a touch renews a lease and leaves a note', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  await queue.send('x', { id: 'a' });
  const [message] = await queue.fetch({ lease: 100 });
  assert.equal(await queue.touch(500, message, { note: 'half' }), 1);
  const { leaseUntil, note } = await queue.get('a');
  assert.deepEqual([leaseUntil, note], [500, 'half']);
  assert.equal(await queue.touch(500, [1, 2]), 0);
});

each('a message is settled together with what follows from it', async ({ client, queue }) => {
  const next = new Queue(client, `{${queue.key}}:next`);
  const from = new Queue(client, `{${queue.key}}:from`);
  await from.send('order', { id: 'o' });
  const [message] = await from.fetch();
  const ids = await from.ackSend(message, [{ payload: 'parcel', to: next.key, id: 'o', delay: 1000 }, { payload: 'again' }], { result: 'paid' });
  assert.equal(ids[0], 'o');
  assert.equal((await next.get('o')).state, 'delayed');
  assert.equal(await from.len(), 1);
  assert.equal(await from.ackSend(message, [{ payload: 'x' }]), null);
});

each('a message is parked until a signal comes', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  await queue.send('x', { id: 'x', park: 1000 });
  assert.deepEqual(await queue.explain('x').then(({ code, until }) => [code, until]), ['parked', 1000]);
  assert.deepEqual([await queue.signal('x', 'first'), await queue.signal('nobody')], [true, false]);
  const [message] = await queue.fetch();
  assert.deepEqual([message.signal, (await queue.get('x')).signal], ['first', 'first']);
  assert.equal(await queue.nack(message, { silent: true, park: true, note: 'asked' }), 1);
  await queue.send('y');
  const [other] = await queue.fetch();
  const following = [{ signal: 'x', data: Buffer.from('second') }, { payload: 'z', id: 'z' }, { signal: 'nobody', to: queue.key }];
  assert.deepEqual(await queue.ackSend(other, following), [true, 'z', false]);
  assert.deepEqual((await queue.fetch({ count: 2 })).map(({ id, signal, note }) => [id, signal, note]), [['x', 'second', 'asked'], ['z', null, null]]);
});

each('limits have names, and messages costs', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', fair: 'COST' });
  await queue.limit('tokens', { rates: [{ limit: 1000, per: 60_000 }, { limit: 5000, per: 3_600_000 }], weight: true });
  await queue.limit('user-*', { concurrency: 2, weight: true });
  for (const id of ['x', 'y']) await queue.send(id, { id, limits: ['user-7', 'tokens'], cost: 2 });
  const { limits, cost, rerun } = await queue.get('x');
  assert.deepEqual([limits, cost, rerun], [['user-7', 'tokens'], 2, false]);
  const [message] = await queue.fetch({ count: 2 });
  assert.deepEqual(await queue.explain('y').then(({ code, by }) => [code, by]), ['limit', 'user-7']);
  const used = (await collected(queue.limits({ count: 1 }))).find(({ limit }) => limit === 'user-7');
  assert.deepEqual([used.rule, used.concurrency, used.runningCost, used.nextFree], ['user-*', 2, 2, null]);
  assert.equal(await queue.ack(message, { cost: 7 }), 1);
  const { rates } = (await collected(queue.limits())).find(({ limit }) => limit === 'tokens');
  assert.deepEqual(rates, [{ limit: 1000, per: 60_000, used: 7 }, { limit: 5000, per: 3_600_000, used: 7 }]);
  await queue.limit('user-*', { concurrency: 1, weight: true });
  assert.deepEqual(await queue.fetch(), []);
  assert.equal((await collected(queue.limits())).find(({ limit }) => limit === 'user-7').nextFree, 'never');
  await queue.limit('tokens');
  assert.equal((await collected(queue.limits())).find(({ limit, rule }) => limit === 'tokens' && rule), undefined);
});

each('a message waits for its children', async ({ client, queue }) => {
  const parts = new Queue(client, `${queue.key}:parts`);
  await parts.create({ retain: 60_000, retries: 0 });
  await queue.send('publish', { id: 'p', children: 2 });
  await parts.send('1', { id: 'a', parent: [queue.key, 'p'] });
  await parts.send('2', { id: 'b', parent: [queue.key, 'p'], onDead: 'GO' });
  const { total } = (await queue.get('p')).children;
  assert.deepEqual([(await queue.explain('p')).code, total], ['children-open', 2]);
  assert.deepEqual((await parts.get('b')).parent, { key: queue.key, id: 'p', ondead: 'GO' });
  const [first, second] = await parts.fetch({ count: 2 });
  await parts.ack(first, { result: 'done' });
  await parts.nack(second, { error: 'broken' });
  const [{ children }] = await queue.fetch();
  assert.deepEqual([children.finished, children.dead], [1, 1]);
  assert.deepEqual(await collected(queue.children('p', { count: 1 })), [
    { key: parts.key, id: 'a', state: 'finished', result: 'done', error: null },
    { key: parts.key, id: 'b', state: 'dead', result: null, error: 'broken' },
  ]);
});

each('a running message runs once more', async ({ queue }) => {
  await queue.send('1', { id: 'x' });
  const [message] = await queue.fetch();
  assert.equal(await queue.send('2', { id: 'x', replace: true }), null);
  assert.equal(await queue.send('3', { id: 'x', replace: true, rerun: true }), 'x');
  assert.equal((await queue.get('x')).rerun, true);
  await queue.ack(message);
  assert.equal((await queue.fetch())[0].text, '3');
});

each('messages are listed, found and changed', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', retain: 1000 });
  for (const id of ['a', 'b', 'c']) await queue.send(id, { id, delay: 1000, type: id === 'a' ? 'mail' : null, headers: { n: id } });
  assert.deepEqual((await collected(queue.list('delayed', { count: 2 }))).map(({ id }) => id), ['a', 'b', 'c']);
  assert.deepEqual((await collected(queue.list('delayed', { rev: true, type: 'mail' }))).map(({ id }) => id), ['a']);
  assert.deepEqual((await collected(queue.find('delayed', { header: ['n', 'b'], since: 500, until: new Date(5000) }))).map(({ id }) => id), ['b']);
  assert.equal(await queue.reschedule('a', { at: 10 }), true);
  assert.equal(await queue.reschedule('nobody', { delay: 0 }), false);
  assert.equal(await queue.update('a', 'new'), true);
  assert.deepEqual((await queue.get('a')).payload.toString(), 'new');
  assert.deepEqual(await queue.cancel('c', 'nobody'), ['delayed', null]);
  assert.equal(await queue.cancelFound('delayed', { payload: 'b' }), 1);
  await queue.tick({ to: 10 });
  assert.equal((await queue.peek())[0].id, 'a');
  const [message] = await queue.fetch();
  await queue.nack(message, { fatal: true });
  assert.equal(await queue.redrive({ ids: ['a'] }), 1);
  assert.equal(await queue.redrive({ count: 5 }), 0);
  assert.equal(await queue.purge({ state: 'cancelled' }), 2);
  assert.equal(await queue.purge(), 1);
});

each('a queue tells about itself', async ({ queue }) => {
  await queue.ensure({ lease: 5000 });
  await queue.ensure({ rate: { limit: 2, per: 1000 }, breaker: { failures: 3, per: 1000, open: 500, max: 2000 }, dedup: 10 });
  await queue.send('x', { batch: 'b' });
  await queue.send('y', { after: 'b', id: 'held' });
  await queue.fetch({ consumer: 'w' });
  const info = await queue.info();
  assert.deepEqual([info.running, info.held, info.lease, info.rate, info.breaker, info.dedup], [1, 1, 5000, '2 PER 1000', '3 PER 1000 OPEN 500 MAX 2000', 10]);
  assert.deepEqual([info.paused, info.nextDueAt, info.blockedClients, info.breakersOpen], [false, null, 0, 0]);
  assert.equal(typeof info.latenessP99, 'number');
  const [consumer] = await queue.consumers();
  assert.deepEqual([consumer.name, consumer.running, consumer.delivered, consumer.acked], ['w', 1, 1, 0]);
  const [batch] = await collected(queue.batches());
  assert.deepEqual(batch, { batch: 'b', pending: 0, running: 1, dead: 0, finished: 0, cancelled: 0, held: 1 });
  const explained = await queue.explain('held');
  assert.deepEqual([explained.code, explained.by, explained.until], ['batch-open', 'b', null]);
  assert.equal((await queue.get('held')).after.pending, 0);
  await queue.pause({ for: 60_000 });
  assert.equal((await queue.info()).paused, true);
  await queue.resume();
  await queue.alter({ rate: 0, breaker: 0 });
  assert.equal((await queue.info()).rate, null);
});

each('the server sends by a schedule', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL' });
  assert.equal(await queue.schedule('tick', 't', { every: 1000, start: 500, type: 'beat' }), 500);
  assert.equal(await queue.schedule('daily', 'd', { cron: '30 3 * * *', tz: 'Asia/Shanghai', missed: 'ALL', overlap: 'SKIP' }), 70_200_000);
  assert.equal((await queue.tick({ advance: 1500 })).fired, 2);
  assert.equal(await queue.unschedule('daily'), true);
  assert.equal(await queue.unschedule('daily'), false);
  const [schedule] = await queue.schedules();
  assert.deepEqual([schedule.name, schedule.nextAt, schedule.lastAt, schedule.fired], ['tick', 2500, 1500, 2]);
  assert.equal(String((await queue.do('LEN'))), '2');
  await queue.schedule('thrice', 't', { every: 1000, times: 3, jitter: 5, until: 9000 });
  assert.deepEqual([await queue.pauseSchedule('thrice'), await queue.pauseSchedule('nobody')], [true, false]);
  const [thrice] = await queue.schedules();
  assert.deepEqual([thrice.times, thrice.jitter, thrice.until, thrice.paused, thrice.skipped], [3, 5, 9000, true, 0]);
  assert.equal(await queue.resumeSchedule('thrice'), true);
});

each('the last failed attempts are kept', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', errors: 2, backoff: ['FIXED', 0] });
  await queue.send('x', { id: 'a' });
  const [message] = await queue.fetch({ consumer: 'ann' });
  await queue.nack(message, { error: 'HTTP 500' });
  assert.deepEqual((await queue.get('a')).errors, [{ attempt: 1, at: 0, consumer: 'ann', text: 'HTTP 500' }]);
});

each('an error reply has its code, and a lost connection is another error', async ({ client, queue }) => {
  await queue.create();
  await assert.rejects(queue.create(), (error) => error instanceof CommandError && error.code === 'ERR' && /already exists/.test(error.message));
  await assert.rejects(queue.send('x', { colour: 'red' }), /COLOUR/);
  const text = new Queue(client, `${queue.key}:text`);
  await (client.callBuffer ? client.call('SET', text.key, 'x') : client.sendCommand(['SET', text.key, 'x']));
  await assert.rejects(text.fetch(), (error) => error.code === 'WRONGTYPE');
  await assert.rejects(text.fetch({ block: 5 }), (error) => error.code === 'WRONGTYPE');
  text.close();
  await close(client);
  await assert.rejects(queue.len(), ConnectionError);
  // The next steps close the client once more.
  if (!client.callBuffer) await client.connect();
});

test('keyPrefix of ioredis comes before each key, also in replies and for other queues', async () => {
  const client = new Redis(url, { keyPrefix: 'shop:' });
  const direct = new Redis(url);
  const name = newName();
  const [queue, other] = [new Queue(client, name), new Queue(client, `${name}:other`)];
  await queue.send('x', { id: 'a' });
  assert.deepEqual([queue.key, await direct.exists(`shop:${name}`, name)], [`shop:${name}`, 1]);
  const messages = await other.fetchFirst([queue], { block: 100 });
  assert.equal(messages[0].queue, queue.key);
  await queue.ackSend(messages[0], [{ payload: 'y', to: `${name}:other` }, { payload: 'z' }]);
  assert.deepEqual([await direct.exists(`shop:${name}:other`), await queue.len(), await other.len()], [1, 1, 1]);
  const [y] = await other.fetch();
  await other.ack(y, { apply: new Effects().set(`${name}:paid`, 'y').ifMissing(`${name}:paid`) });
  assert.equal(await direct.get(`shop:${name}:paid`), 'y');
  const ran = [];
  const worker = new Worker(queue, ({ text }) => void ran.push(text), { block: 50 });
  await working(worker, () => until(async () => (await queue.len()) === 0));
  const family = new Family(client, `${name}:family`, 2);
  await family.send('w', { group: 'g' });
  assert.equal(await direct.exists(family.queue('g').key), 1);
  assert.ok(family.queue('g').key.startsWith(`shop:${name}:family`));
  await working(new Worker(family, ({ text }) => void ran.push(text), { block: 50 }), () => until(() => ran.length === 2));
  assert.deepEqual(ran, ['z', 'w']);
  assert.throws(() => new Family(new Redis(url, { keyPrefix: '{a}:', lazyConnect: true }), 'f', 2), /keyPrefix/);
  for (const one of [queue, other, family]) one.close();
  for (const one of [client, direct]) await close(one);
});

test('another client is refused', () => {
  assert.throws(() => new Queue({}, 'q'), TypeError);
  // A cluster of node-redis 4.
  assert.throws(() => new Queue({ sendCommand: () => {}, nodeClient: () => {} }, 'q'), /node-redis 5.9/);
});
