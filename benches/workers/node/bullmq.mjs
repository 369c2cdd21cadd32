// BullMQ over ioredis. Jobs that are done are removed.

import { Queue, Worker } from 'bullmq';
import * as job from './job.mjs';

const connection = { host: '127.0.0.1', port: job.port, maxRetriesPerRequest: null };
if (process.argv[2] === 'send') {
  const queue = new Queue('jobs', { connection });
  await job.send((payload, delay) => queue.add('run', payload, { delay, removeOnComplete: true }));
  await queue.close();
} else {
  new Worker('jobs', async ({ data }) => job.handle(data), { connection, concurrency: job.concurrency });
}
