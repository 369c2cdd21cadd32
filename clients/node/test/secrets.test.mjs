/** Encrypted payloads and headers: the cases of all languages. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Queue, Reject, Secrets, Worker } from 'dq-queue';
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
