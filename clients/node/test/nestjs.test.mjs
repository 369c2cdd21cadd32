/** The transporter of NestJS: events, requests, errors and stopping. */

import 'reflect-metadata';

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import test from 'node:test';

import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, MessagePattern, Payload, RpcException } from '@nestjs/microservices';
import { Family, Retry } from 'dq-queue';
import { DqClient, DqContext, DqRecord, DqServer } from 'dq-queue/nestjs';
import { firstValueFrom, from, lastValueFrom, toArray } from 'rxjs';
import { each, newName, until } from './setup.mjs';

/** The effect of the decorators of TypeScript. */
function decorated(parts, methods) {
  class Shop {}
  for (const [name, [pattern, method]] of Object.entries(methods)) {
    Shop.prototype[name] = method;
    const descriptor = Object.getOwnPropertyDescriptor(Shop.prototype, name);
    Payload()(Shop.prototype, name, 0);
    Ctx()(Shop.prototype, name, 1);
    pattern(Shop.prototype, name, descriptor);
  }
  Controller()(Shop);
  class App {}
  Module({ controllers: [Shop], ...parts })(App);
  return App;
}

async function shop(source, methods, options) {
  const strategy = new DqServer({ source, block: 50, ...options });
  const app = await NestFactory.createMicroservice(decorated({}, methods), { strategy, logger: false });
  await app.listen();
  return app;
}

each('events are handled with their options, and tried again if they fail', async ({ queue }) => {
  await queue.create({ clock: 'MANUAL', backoff: ['FIXED', 1000], retries: 1 });
  const seen = [];
  const app = await shop(queue, {
    created: [EventPattern('order.created'), (data, context) => {
      assert.ok(context instanceof DqContext);
      seen.push([data, context.getMessage().attempt, context.getMessage().group, context.getMetadata().lang, context.getSignal().aborted]);
      if (seen.length === 1) throw new Error('busy');
    }],
    failed: [EventPattern({ cmd: 'fail' }), () => {
      throw new RpcException(new Retry('the bank is closed', { delay: 70 }));
    }],
    streamed: [EventPattern('stream'), () => from([1, 2]) ],
  });
  const client = new DqClient({ source: queue });
  await firstValueFrom(client.emit('order.created', new DqRecord({ id: 7 }, { group: 'ann', headers: { lang: 'zh' }, id: 'o7' })));
  await until(async () => (await queue.get('o7'))?.state === 'retry');
  assert.equal((await queue.get('o7')).dueAt, 1000);
  await queue.tick({ advance: 1000 });
  await until(async () => (await queue.get('o7')) === null);
  assert.deepEqual(seen, [[{ id: 7 }, 1, 'ann', 'zh', false], [{ id: 7 }, 2, 'ann', 'zh', false]]);
  await firstValueFrom(client.emit({ cmd: 'fail' }, new DqRecord('', { id: 'f' })));
  await until(async () => (await queue.get('f'))?.state === 'retry');
  const { error, dueAt } = await queue.get('f');
  assert.deepEqual([error, dueAt], ['the bank is closed', 1070]);
  await firstValueFrom(client.emit('stream', 1));
  await queue.send('{}', { id: 'strange', type: 'strange' });
  await until(async () => (await queue.get('strange')).state === 'retry');
  assert.match((await queue.get('strange')).error, /no handler for pattern "strange"/);
  await app.close();
  client.close();
});

each('requests are answered', async ({ queue }) => {
  const app = await shop(queue, {
    sum: [MessagePattern('sum'), async (numbers) => numbers.reduce((a, b) => a + b, 0)],
    many: [MessagePattern('many'), () => from([1, 'two', null])],
    nothing: [MessagePattern('nothing'), () => undefined],
    refused: [MessagePattern('refused'), () => {
      throw new RpcException({ code: 402, message: 'no credit' });
    }],
    broken: [MessagePattern('broken'), () => {
      throw new TypeError('secret');
    }],
  }, { concurrency: 10 });
  const client = new DqClient({ source: queue });
  assert.equal(await firstValueFrom(client.send('sum', [1, 2, 3])), 6);
  const sums = await Promise.all(Array.from({ length: 40 }, (_, n) => firstValueFrom(client.send('sum', [n, 1]))));
  assert.deepEqual(sums, Array.from({ length: 40 }, (_, n) => n + 1));
  assert.deepEqual(await lastValueFrom(client.send('many', {}).pipe(toArray())), [1, 'two', null]);
  assert.equal((await lastValueFrom(client.send('nothing', {}))) ?? null, null);
  await assert.rejects(firstValueFrom(client.send('refused', {})), { code: 402, message: 'no credit' });
  // The framework shows no text of an error that is not an RpcException.
  await assert.rejects(firstValueFrom(client.send('broken', {})), { message: 'Internal server error' });
  assert.deepEqual([await queue.len(), (await queue.info()).nacked], [0, 0]);
  await app.close();
  client.close();
});

each('the effects of a handler go with its ack, and only with that', async ({ client: redis, queue }) => {
  const paid = `${queue.key}:paid`;
  const pay = async (how, context) => {
    const effects = context.effects().incrby(paid, 5);
    if (how === 'fails') throw new RpcException('no');
    if (how === 'is refused') effects.ifMissing(paid);
    if (how === 'is lost') await queue.cancel(context.getMessage().id);
    return how;
  };
  const app = await shop(queue, { paid: [EventPattern('paid'), (how, context) => pay(how, context)], pay: [MessagePattern('pay'), pay] });
  const client = new DqClient({ source: queue });
  assert.equal(await firstValueFrom(client.send('pay', 'returns')), 'returns');
  await assert.rejects(firstValueFrom(client.send('pay', 'fails')));
  await Promise.all(['returns', 'fails', 'is refused', 'is lost'].map((how) => firstValueFrom(client.emit('paid', new DqRecord(how, { id: how, retries: 0, retain: 60_000 })))));
  for (const id of ['returns', 'fails', 'is refused', 'is lost']) await until(async () => ['finished', 'dead', 'cancelled'].includes((await queue.get(id)).state));
  assert.match((await queue.get('is refused')).error, /CONDITION 1/);
  const value = redis.callBuffer ? await redis.get(paid) : await redis.sendCommand(['GET', paid]);
  assert.equal(String(value), '10');
  await app.close();
  client.close();
});

each('a request that nobody waits for is cancelled', async ({ queue }) => {
  await queue.create({ retain: 60_000 });
  const client = new DqClient({ source: queue, timeout: 50 });
  await assert.rejects(firstValueFrom(client.send('sum', new DqRecord([1], { id: 'late' }))), /no answer within 50 ms/);
  await until(async () => (await queue.get('late')).state === 'cancelled');
  const patient = new DqClient({ source: queue });
  const subscription = patient.send('sum', new DqRecord([1], { id: 'dropped' })).subscribe();
  await until(() => queue.get('dropped'));
  subscription.unsubscribe();
  await until(async () => (await queue.get('dropped')).state === 'cancelled');
  await queue.send('x', { id: 'taken' });
  await queue.fetch().then(([message]) => queue.nack(message, { fatal: true, error: 'bad' }));
  await assert.rejects(firstValueFrom(patient.send('sum', new DqRecord([1], { id: 'taken' }))), /dead: bad/);
  for (const one of [client, patient]) one.close();
});

each('a service that closes lets its handlers finish', async ({ queue }) => {
  let go;
  let begun = false;
  const app = await shop(queue, {
    slow: [MessagePattern('slow'), async () => {
      begun = true;
      await new Promise((resolve) => (go = resolve));
      return 'in time';
    }],
  });
  const client = new DqClient({ source: queue });
  const answer = firstValueFrom(client.send('slow', {}));
  await until(() => begun);
  const closing = app.close();
  go();
  assert.equal(await answer, 'in time');
  await closing;
  client.close();
});

each('a request needs nothing that its queue has lost', async ({ client: redis, queue }) => {
  const app = await shop(queue, { double: [MessagePattern('double'), (n) => 2 * n] });
  const client = new DqClient({ source: queue });
  for (const n of [1, 2]) {
    // The record with the answer is there although the queue keeps none by itself.
    assert.equal(await firstValueFrom(client.send('double', n)), 2 * n);
    assert.equal((await queue.info()).finished, 1);
    await redis.del(queue.key);
  }
  await app.close();
  client.close();
});

each('a family carries requests and events', async ({ client: redis }) => {
  const family = new Family(redis, newName(), 4);
  const app = await shop(family, { double: [MessagePattern('double'), (n) => 2 * n] });
  const client = new DqClient({ source: family });
  assert.equal(await firstValueFrom(client.send('double', new DqRecord(21, { group: 'ann' }))), 42);
  assert.equal(await firstValueFrom(client.send('double', 4)), 8);
  await app.close();
  client.close();
});

test('the transporter is the same for ESM and CommonJS', () => {
  assert.equal(createRequire(import.meta.url)('dq-queue/nestjs').DqServer, DqServer);
});
