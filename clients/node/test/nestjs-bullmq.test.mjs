/** @nestjs/bullmq on dq: a processor, the listeners of its worker and of its queue, and a flow. */

import 'reflect-metadata';

import assert from 'node:assert/strict';
import test from 'node:test';

import { BullModule, getFlowProducerToken, getQueueToken, OnQueueEvent, OnWorkerEvent, Processor, QueueEventsHost, QueueEventsListener, WorkerHost } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Queue, setDefaultBackendFactory } from 'bullmq';
import { Secrets } from 'dq-queue';
import { createDqBackend, DqQueueBackend } from 'dq-queue/bullmq';

import { connection, newBullName } from './bull.mjs';
import { until } from './setup.mjs';

/** The effect of the decorators of TypeScript. */
const decorate = (type, decorator, methods) => {
  for (const [name, one] of Object.entries(methods)) one(type.prototype, name, Object.getOwnPropertyDescriptor(type.prototype, name));
  decorator(type);
};

const works = async (options) => {
  setDefaultBackendFactory(createDqBackend(options));
  const name = newBullName();
  const seen = [];
  class Mails extends WorkerHost {
    async process(job) {
      if (job.name === 'round') return Object.values(await job.getChildrenValues()).sort();
      if (job.data.to === 'nobody' && job.attemptsMade === 0) throw new Error('busy');
      return `sent to ${job.data.to}`;
    }

    failed(job, error) {
      seen.push(['failed', job.data.to, error.message]);
    }
  }
  decorate(Mails, Processor(name, { concurrency: 5 }), { failed: OnWorkerEvent('failed') });
  class Told extends QueueEventsHost {
    completed({ returnvalue }) {
      seen.push(['completed', returnvalue]);
    }
  }
  decorate(Told, QueueEventsListener(name), { completed: OnQueueEvent('completed') });
  class App {}
  const flow = newBullName();
  const queues = BullModule.registerQueue({ name, defaultJobOptions: { attempts: 2 } });
  Module({
    imports: [BullModule.forRoot({ connection, prefix: 'nest' }), queues, BullModule.registerFlowProducer({ name: flow })],
    providers: [Mails, Told],
  })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  try {
    const queue = app.get(getQueueToken(name));
    assert.ok(queue instanceof Queue);
    assert.ok((await queue.backend) instanceof DqQueueBackend);
    assert.equal(queue.qualifiedName, `nest:${name}`);
    await app.get(Told).queueEvents.waitUntilReady();
    await queue.add('mail', { to: 'ann' });
    await queue.add('mail', { to: 'nobody' });
    await until(() => seen.length === 3);
    assert.deepEqual(seen.map(String).sort(), ['completed,sent to ann', 'completed,sent to nobody', 'failed,nobody,busy']);
    const children = ['bo', 'cy'].map((to) => ({ name: 'mail', queueName: name, data: { to } }));
    const { job } = await app.get(getFlowProducerToken(flow)).add({ name: 'round', queueName: name, children });
    await until(async () => (await job.getState()) === 'completed');
    assert.deepEqual((await queue.getJob(job.id)).returnvalue, ['sent to bo', 'sent to cy']);
    const look = new Queue(name, { connection, prefix: 'nest' }, createDqBackend());
    const { returnvalue } = await look.getJob(job.id);
    await look.close();
    return JSON.stringify(returnvalue);
  } finally {
    await app.close();
  }
};

test('a module with a processor, listeners and a flow', async () => assert.match(await works(), /sent to bo/));

test('the same, with what only it can read', async () => assert.doesNotMatch(await works({ secrets: new Secrets({ key: Buffer.alloc(32) }) }), /sent to/));
