// The ceiling of Node: a loop over ioredis that only fetches and acks, COUNT at a time.

import { Redis } from 'ioredis';
import * as job from './job.mjs';

const redis = new Redis({ port: job.port });
let acks = [];
for (;;) {
  const batch = await redis.callBuffer('DQ.FETCH', 'jobs', 'COUNT', job.concurrency, 'BLOCK', 2000, ...acks);
  for (const [, , , payload] of batch ?? []) job.arrived(payload.toString());
  acks = batch?.length ? ['ACK', batch.length, ...batch.map((one) => one[1])] : [];
}
