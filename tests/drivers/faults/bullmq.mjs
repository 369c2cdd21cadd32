/** A worker of BullMQ on dq. The packages are beside it in node_modules. */

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { Worker } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';

const { FAULTS_URL, FAULTS_LEASE, FAULTS_LOG } = process.env;
const note = (...words) => appendFileSync(FAULTS_LOG, `${words.join(' ')}\n`);

const handle = async ({ data: [id, seconds] }) => {
  note('begin', id);
  await sleep(seconds * 1000);
  note('end', id);
};
const options = { connection: { url: FAULTS_URL }, concurrency: 2, lockDuration: Number(FAULTS_LEASE), removeOnComplete: true };
const worker = new Worker('work', handle, options, createDqBackend());
worker.on('error', (error) => console.error(error.message));
process.once('SIGTERM', async () => {
  // Without its server, a worker waits for the acks of its jobs for as long as their locks hold.
  await Promise.race([worker.close(), sleep(3000)]);
  process.exit();
});
