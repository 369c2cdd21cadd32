/** Encrypted payloads and headers: the cases of all languages. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Compression, Layers, Offload, Queue, Reject, Secrets, Worker } from 'dq-queue';
import { each, until, working } from './setup.mjs';

const given = JSON.parse(readFileSync(new URL('secrets.json', process.env.DQ_CONFORMANCE)));
const keys = new Map(Object.entries(given.keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
const secrets = new Secrets(keys, { headers: given.headers, queues: given.queues });

test('a message of any language is read', () => {
  for (const one of given.cases) {
    const queue = one.opened ?? one.queue;
    const payload = Buffer.from(one.payload, 'base64');
    assert.deepEqual(secrets.open(queue, one.id, Buffer.from(one.sealed, 'base64'), one.fields), [payload, one.headers], one.name);
    const [sealed, fields] = secrets.seal(one.queue, one.id, payload, one.headers);
    assert.deepEqual(Object.keys(fields).sort(), Object.keys(one.fields).sort());
    assert.deepEqual(secrets.open(queue, one.id, sealed, fields), [payload, one.headers], one.name);
  }
});

test('a message that was not sent so is refused', () => {
  for (const one of given.broken) {
    const error = one.error === 'reject' ? Reject : RangeError;
    assert.throws(() => secrets.open(one.queue, one.id, Buffer.from(one.sealed, 'base64'), one.fields), error, one.name);
  }
});

each('a worker gets what was sent', async ({ client, queue: { key } }) => {
  const queue = new Queue(client, key, { middleware: [secrets] });
  const other = new Queue(client, key);
  await queue.create({ retain: 60_000, retries: 0 });
  const id = await queue.send('{"name":"ann"}', { headers: { email: 'ann', trace: 1 } });
  const { payload } = await queue.get(id);
  assert.ok(!payload.includes('ann'));
  await other.send(payload, { id: 'copied', headers: { 'dq-key': '2026' } });
  const got = [];
  const worker = new Worker(queue, ({ data, headers }) => void got.push(data, headers), { block: 50 });
  await working(worker, () => until(async () => (await queue.get('copied')).state === 'dead' && got.length > 0));
  assert.deepEqual(got, [{ name: 'ann' }, { email: 'ann', trace: '1' }]);
});

// Node 20 has no zstd.
const zstd = process.getBuiltinModule?.('node:zlib').zstdCompressSync ? undefined : await wasm();

async function wasm() {
  const { compress, decompress, init } = await import('@bokuweb/zstd-wasm');
  await init();
  return {
    compress: (payload) => compress(payload, 3),
    decompress(payload, most) {
      const plain = decompress(payload);
      if (plain.length > most) throw new RangeError('too large');
      return plain;
    },
  };
}

class Shelf extends Map {
  async put(key, payload) {
    this.set(key, payload);
  }
}

const layers = (client, shelf) =>
  new Layers(new Compression({ most: given.layers.most, zstd }), secrets, new Offload(shelf, client, { above: given.layers.above }));

each('layers of any language are read, and what cannot be read is refused', async ({ client }) => {
  for (const one of given.layers.cases) {
    const shelf = new Shelf(Object.entries(one.store).map(([key, payload]) => [key, Buffer.from(payload, 'base64')]));
    const unit = Buffer.from(one.payload, 'base64');
    const plain = Buffer.concat(Array(one.times ?? 1).fill(unit));
    const coding = layers(client, shelf);
    assert.deepEqual(await coding.open('mails', 'm', Buffer.from(one.sealed, 'base64'), one.fields), [plain, {}], one.name);
    const [sealed, fields] = await coding.seal('mails', 'm', plain);
    assert.deepEqual(Object.keys(fields).sort(), Object.keys(one.fields).sort(), one.name);
    assert.deepEqual(await coding.open('mails', 'm', sealed, fields), [plain, {}], one.name);
  }
  for (const one of given.layers.broken) {
    const error = one.error === 'reject' ? Reject : RangeError;
    await assert.rejects(layers(client, new Shelf()).open('mails', 'm', Buffer.from(one.sealed, 'base64'), one.fields), error, one.name);
  }
});

each('what is kept elsewhere goes with its record', async ({ client, queue: { key } }) => {
  const shelf = new Shelf();
  const offload = new Offload(shelf, client, { above: 10 });
  const queue = new Queue(client, key, { middleware: [offload] });
  await offload.seal(key, 'never-sent', 'x'.repeat(11));
  await queue.send('x'.repeat(11), { id: 'waits' });
  assert.deepEqual([await offload.sweep(key), await offload.sweep(key, { after: -1000 })], [0, 1]);
  const got = [];
  await working(new Worker(queue, ({ text }) => void got.push(text), { block: 50 }), () => until(() => got.length === 1));
  assert.deepEqual([got, shelf.size], [['x'.repeat(11)], 1]);
  assert.deepEqual([await offload.sweep(key, { after: -1000 }), shelf.size], [1, 0]);
});

each('what a worker has opened goes with its record', async ({ client, queue: { key } }) => {
  const { above, payload: text, queues, named } = given.offload;
  for (const [at, { deadto, goes }] of queues.entries()) {
    const shelf = new Shelf();
    const queue = new Queue(client, `${key}:${at}`);
    await queue.create(deadto ? { deadTo: deadto } : {});
    const offload = new Offload(shelf, client, { above, queues: named });
    const [payload, headers] = await offload.seal(queue.key, 'first', text);
    await queue.send(payload, { id: 'first', headers });
    const [message] = await queue.fetch();
    const [opened] = await offload.open(queue.key, 'first', message.payload, message.headers);
    const [first] = shelf.keys();
    await offload.seal(queue.key, 'second', text);
    assert.deepEqual([opened.toString(), shelf.has(first)], [text, true]);
    await queue.ack(message);
    await offload.seal(queue.key, 'third', text);
    assert.equal(shelf.has(first), !goes, `${deadto}`);
  }
});
