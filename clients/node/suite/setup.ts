/** Lets BullMQ's tests use dq, as their own set-up for PostgreSQL does: a connection that does nothing, and the backend. */

import { createRequire } from 'node:module';

import { setDefaultBackendFactory } from './src/utils/create-backend';
import { setConnectionFactory } from './tests/utils/connection-factory';

const require = createRequire(`${process.env.DQ_NODE_CLIENT}/package.json`);
const { createDqBackend } = require('dq-queue/bullmq');
const { Redis } = require('ioredis');

setConnectionFactory(() => {
  const client: Record<string, unknown> = { isCluster: false, status: 'ready', options: {} };
  Object.assign(client, { connect: async () => {}, disconnect: () => {}, quit: async () => 'OK', duplicate: () => client });
  for (const name of ['on', 'once', 'off', 'removeListener']) client[name] = () => client;
  client.emit = () => false;
  return client as never;
});
// The few tests whose child processes open a connection to Redis themselves skip themselves.
process.env.BULLMQ_TEST_BACKEND = 'dq';
const connection = new Redis(process.env.DQ_TEST_URL, { maxRetriesPerRequest: null });
connection.setMaxListeners(0);
setDefaultBackendFactory(createDqBackend({ connection, clock: process.env.DQ_SUITE_CLOCK }));
