/** The conformance cases for clients, with each library and protocol. docs/clients.md explains the steps. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Effects, Follow, Park, Queue, Reject, Retry, Snooze, Worker, partition, queues, route, slot, tags } from 'dq-queue';
import { each } from './setup.mjs';

const folder = process.env.DQ_CONFORMANCE ?? new URL('../../../tests/conformance/', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, folder)));

for (const { name, steps } of read('cases.json').cases) {
  each(name, async ({ client, queue }) => {
    const known = { key: queue.key };
    for (const step of steps) {
      if (step.work) await work(client, queue.key, step);
      else if (step.durable) await durable(client, known, step);
      else if (step.apply) await apply(queue, known, step);
      else await command(client, known, step);
    }
  });
}

async function command(client, known, step) {
  const [verb, ...words] = step.do.map((word) => filled(String(word), known));
  let reply;
  try {
    reply = client.callBuffer ? await client.callBuffer(verb, ...words) : await client.sendCommand([verb, ...words]);
  } catch (error) {
    assert.ok(step.error, `${step.do}: ${error.message}`);
    assert.ok(error.message.startsWith(step.error), error.message);
    return;
  }
  assert.ok('reply' in step, `${step.do} gave no error`);
  compare(step.reply, reply, known, step.do.join(' '));
}

const filled = (text, known) => text.replace(/<(\w+)>/g, (all, name) => known[name] ?? all);

function compare(expected, given, known, what) {
  if (Buffer.isBuffer(given)) given = given.toString();
  const name = typeof expected === 'string' && /^<(\w+)>$/.exec(expected)?.[1];
  if (expected === null) assert.equal(given, null, what);
  else if (name) {
    assert.notEqual(given, null, what);
    if (name !== 'any') assert.equal(given, (known[name] ??= given), what);
  } else if (typeof expected === 'string') assert.equal(given, filled(expected, known), what);
  else if (typeof expected === 'boolean') assert.equal(Boolean(given), expected, what);
  else if (typeof expected === 'number') assert.equal(Number(given), expected, what);
  else if (Array.isArray(expected)) {
    assert.equal(given.length, expected.length, what);
    expected.forEach((one, at) => compare(one, given[at], known, what));
  } else {
    const entries = Array.isArray(given) ? given.flatMap((_, at) => (at % 2 ? [] : [[String(given[at]), given[at + 1]]])) : Object.entries(given);
    const fields = new Map(entries);
    for (const [field, value] of Object.entries(expected)) compare(value, fields.get(field), known, `${what}: ${field}`);
  }
}

/** Sends or acks by a queue whose commands nobody confirms: the server has no replica. */
async function durable(client, known, { durable: [verb, word, id] }) {
  const queue = new Queue(client, known.key, { durable: { replicas: 9, inMemory: true, timeout: 10 }, patience: 0 });
  const doing = verb === 'send' ? queue.send(word, { id }) : queue.ack(Number(filled(word, known)));
  await assert.rejects(doing, { name: 'NotConfirmedError', id });
  queue.close();
}

/** Settles a message by hand, with effects. */
async function apply(queue, known, step) {
  const { receipt, next, effects, returns, applied } = JSON.parse(filled(JSON.stringify(step), known));
  const by = collect(new Effects(), effects);
  const doing = {
    ack: () => queue.ack(Number(receipt), { apply: by }),
    ack_send: () => queue.ackSend(Number(receipt), [{ id: next[0], payload: next[1] }], { apply: by }),
    fetch: async () => (await queue.fetch({ ack: [Number(receipt)], apply: by })).map(({ id }) => id),
  }[step.apply]();
  if (step.error) return void (await assert.rejects(doing, ({ name, message }) => name === 'CommandError' && message.startsWith(step.error)));
  assert.deepEqual(await doing, returns);
  compare(step.applied, by.applied, known, 'applied');
}

const collect = (effects, all) => all.reduce((into, [name, ...words]) => into[name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())](...words), effects);

async function work(client, key, { work: count, grace, types = ['*'] }) {
  const handle = (message, context) => {
    if (--count === 0) worker.stop();
    return outcome(message, context, queue);
  };
  const queue = new Queue(client, key);
  const worker = new Worker(queue, Object.fromEntries(types.map((type) => [type, handle])), { grace });
  await worker.run();
}

async function outcome(message, { signal, note, cost }, queue) {
  let [verb, text, more] = message.data;
  if (verb === 'apply') {
    collect(message.effects, text);
    [verb, text, more] = message.data.slice(2);
  }
  if (verb === 'cancel') return void (await queue.cancel(message.id));
  if (verb === 'note' && message.note === null) assert.equal(await note(text), true);
  if (verb === 'fail' || (verb === 'note' && message.note === null)) throw new Error(text);
  if (verb === 'retry') throw new Retry(text, { delay: more });
  if (verb === 'reject') throw new Reject(text);
  if (verb === 'snooze') throw new Snooze('', { delay: text });
  if (verb === 'park' && message.signal === null) throw new Park('', { note: text, for: more });
  if (verb === 'follow') return new Follow({ payload: more, id: text });
  if (verb === 'signal') return new Follow([{ signal: text, data: more }]);
  if (verb === 'hang') return new Promise((resolve) => signal.addEventListener('abort', resolve));
  if (verb === 'cost') return cost(text);
  if (verb === 'note') return message.note;
  return verb === 'park' ? message.signal : text;
}

test('groups belong to the queues of the examples', () => {
  const examples = read('routing.json');
  for (const [partitions, expected] of Object.entries(examples.tags)) assert.deepEqual(tags(Number(partitions)), expected);
  for (const { tag, slot: expected } of examples.slots) assert.equal(slot(tag), expected);
  for (const { family, partitions, group_hex, partition: number, queue } of examples.routes) {
    const group = Buffer.from(group_hex, 'hex');
    assert.equal(partition(partitions, group), number);
    assert.equal(route(family, partitions, group), queue);
    assert.ok(queues(family, partitions).includes(queue));
  }
  for (const partitions of [0, 3, -2, 1.5, 32_768]) assert.throws(() => tags(partitions), RangeError);
});
