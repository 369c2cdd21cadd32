/** A connection of one's own, without a server. */

import assert from 'node:assert/strict';
import test from 'node:test';

import { Connection } from '../dist/connection.js';

test('a connection that is closed fails all its calls, though its library answers none', async () => {
  let closed = 0;
  const link = { send: () => new Promise(() => {}), close: () => closed++ };
  const connection = await Connection.to({ name: '', link: async () => link });
  // BullMQ's QueueEvents names itself on the connection on which it waits.
  const calls = [connection.call(['XREAD'], 30_000), connection.call(['CLIENT', 'SETNAME', 'me'])];
  connection.close();
  for (const call of calls) await assert.rejects(call, { name: 'ConnectionError', message: /the connection is closed/ });
  assert.equal(closed, 1);
});
