/** A worker of clients/node. DQ_LIBRARY says over which library. The package is beside it in node_modules. */

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { Queue, Worker } from 'dq-queue';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

const { FAULTS_URL, FAULTS_LEASE, FAULTS_LOG, FAULTS_LIBRARY } = process.env;
const note = (...words) => appendFileSync(FAULTS_LOG, `${words.join(' ')}\n`);

let client;
if (FAULTS_LIBRARY === 'ioredis') client = new Redis(FAULTS_URL, { maxRetriesPerRequest: null });
else client = createClient({ url: FAULTS_URL });
client.on('error', () => {});
if (client.connect && FAULTS_LIBRARY !== 'ioredis') await client.connect();

const handle = async ({ data: [id, seconds] }) => {
  note('begin', id);
  await sleep(seconds * 1000);
  note('end', id);
};
const worker = new Worker(new Queue(client, 'work'), handle, { lease: Number(FAULTS_LEASE), grace: 3000, concurrency: 2 });
worker.on('warning', (error) => console.error(error.message));
await worker.run({ signals: true });
process.exit();
