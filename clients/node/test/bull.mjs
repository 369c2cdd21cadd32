/** Tests of dq as a backend of BullMQ. */

import test from 'node:test';

import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';

import { newName, url } from './setup.mjs';

const { hostname: host, port } = new URL(url);
export const connection = { host, port: Number(port) };

/** A name that no other test has, as BullMQ allows it. */
export const newBullName = () => newName().replaceAll(':', '-');

/** Defines a test that gets a queue of BullMQ, and functions that make workers and events of it. All are closed behind it. */
export function bull(name, run, { to = connection, factory = createDqBackend() } = {}) {
  test(name, async () => {
    const made = [];
    const keep = (one) => {
      one.on?.('error', () => {});
      made.unshift(one);
      return one;
    };
    const queueName = newBullName();
    const queue = keep(new Queue(queueName, { connection: to }, factory));
    const worker = (processor, options) => keep(new Worker(queueName, processor, { connection: to, ...options }, factory));
    const events = async (options) => {
      const one = keep(new QueueEvents(queueName, { connection: to, ...options }, factory));
      await one.waitUntilReady();
      return one;
    };
    const flows = () => keep(new FlowProducer({ connection: to }, factory));
    try {
      await run({ queue, worker, events, flows });
    } finally {
      for (const one of made) await one.close();
    }
  });
}
