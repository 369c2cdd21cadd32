// dq-queue over ioredis.

import { Queue, Worker } from 'dq-queue';
import { Redis } from 'ioredis';
import * as job from './job.mjs';

const redis = new Redis({ port: job.port });
const queue = new Queue(redis, 'jobs');
if (process.argv[2] === 'send') {
  await job.send((payload, delay) => queue.send(payload, delay ? { delay } : {}));
  redis.disconnect();
} else {
  await new Worker(queue, (message) => job.handle(message.text), { concurrency: job.concurrency }).run();
}
