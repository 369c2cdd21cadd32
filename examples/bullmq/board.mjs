/**
 * A shop on BullMQ, with bull-board as its dashboard, and dq as the store of both. Only one line is dq's.
 *
 *   npm install bullmq ioredis express @bull-board/api @bull-board/express dq-queue-0.1.0.tgz
 *   REDIS_URL=redis://localhost node board.mjs        then open http://localhost:3000/jobs
 */

import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { FlowProducer, Queue, UnrecoverableError, Worker, setDefaultBackendFactory } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
import express from 'express';

setDefaultBackendFactory(createDqBackend()); // the line

const connection = { url: process.env.REDIS_URL ?? 'redis://localhost' };
const [orders, mails] = ['orders', 'mails'].map((name) => new Queue(name, { connection }));
const flows = new FlowProducer({ connection });

const workers = [
  new Worker('mails', async (job) => {
    await job.log(`writing to ${job.data.to}`);
    await job.updateProgress(50);
    if (!job.data.to.includes('@')) throw new UnrecoverableError(`${job.data.to} is no address`);
    return 'sent';
  }, { connection, concurrency: 5 }),
  // The order is shipped when its mails are sent.
  new Worker('orders', async (job) => ({ shipped: job.data.id, mails: Object.values(await job.getChildrenValues()) }), { connection }),
];
for (const worker of workers) worker.on('error', console.error);

await mails.upsertJobScheduler('newsletter', { pattern: '0 9 * * 1' }, { name: 'newsletter', data: { to: 'all@shop.example' } });

const board = new ExpressAdapter();
board.setBasePath('/jobs');
createBullBoard({ queues: [new BullMQAdapter(orders), new BullMQAdapter(mails)], serverAdapter: board });

const app = express();
app.use('/jobs', board.getRouter());
app.post('/order/:id/:to', async (request, response) => {
  const { id, to } = request.params;
  const { job } = await flows.add({
    name: 'ship',
    queueName: 'orders',
    data: { id },
    children: [{ name: 'confirm', queueName: 'mails', data: { to } }],
  });
  response.send(job.id);
});
const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log(`http://localhost:${server.address().port}/jobs`));

process.on('SIGTERM', async () => {
  server.close();
  for (const one of [...workers, orders, mails, flows]) await one.close();
});
