/** How a worker of BullMQ on dq waits for replies. */

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { setImmediate as soon, setTimeout as sleep } from 'node:timers/promises';

test('the event loop turns for a reply only while replies come at once', { skip: availableParallelism() === 1 && 'one processor' }, async () => {
  let turns = 0;
  const real = globalThis.setImmediate;
  globalThis.setImmediate = (turn) => {
    turns++;
    return real(turn);
  };
  const { Awake } = await import('../dist/bullmq/awake.js');
  globalThis.setImmediate = real;
  const awake = new Awake();
  await awake.until(soon());
  assert.equal(turns, 0);
  // A busy machine may not be so quick at the first try.
  while (turns === 0) {
    await awake.until(soon());
    const { idle } = performance.eventLoopUtilization();
    await awake.until(sleep(20));
    assert.ok(performance.eventLoopUtilization().idle > idle, 'it turned for the whole time');
  }
  const before = turns;
  await awake.until(soon());
  assert.equal(turns, before);
});
