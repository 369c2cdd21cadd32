/*
 * A producer and a worker with node-redis; ../README.md says what they show.
 *
 *     npm ci
 *     node jobs.mjs send redis://127.0.0.1:6379 orders 100
 *     node jobs.mjs work redis://127.0.0.1:6379 orders
 *
 * A FETCH that waits holds up all that follows on its connection: heartbeats go over another one.
 */

import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, ErrorReply } from 'redis';

const LEASE_MS = Number(process.env.LEASE_MS ?? 30000);
const BLOCK_MS = 2000;
const SOCKET_TIMEOUT_MS = 5000; // longer than BLOCK_MS

const stop = new AbortController();
const stopping = () => stop.signal.aborted;

async function connect(url) {
  const client = createClient({
    url,
    RESP: Number(process.env.RESP ?? 3),
    socket: {
      connectTimeout: SOCKET_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      reconnectStrategy: (retries) => (stopping() ? false : Math.min(50 * 2 ** retries, 1000)),
    },
    // A silent connection is closed after socketTimeout: let idle ones speak.
    pingInterval: SOCKET_TIMEOUT_MS / 2,
  });
  client.on('error', (error) => console.log('connection:', error.message));
  return client.connect();
}

/** One command; node-redis takes strings only. */
const call = (client, ...words) => client.sendCommand(words.map(String));

/** An error reply, which repeating would not help, unless the server is just starting. */
const isRefusal = (error) => error instanceof ErrorReply && !error.message.startsWith('LOADING');

/** Repeats a command until it is answered. All commands here may be: see ../README.md. */
async function insist(client, ...words) {
  for (let pause = 50; ; pause = Math.min(pause * 2, 1000)) {
    try {
      return await call(client, ...words);
    } catch (error) {
      if (isRefusal(error) || stopping()) throw error;
      console.log('trying again:', error.message);
    }
    await sleep(pause);
  }
}

// ---- producer -------------------------------------------------------------------------------------------------------

async function send(client, queue, count, workMs = 20) {
  await insist(client, 'DQ.CREATE', queue, 'DEDUP', 60000).catch((error) => {
    if (!error.message.includes('queue already exists')) throw error;
  });
  for (let n = 0; n < Number(count); n++) {
    const job = { order: `order-${n}`, work_ms: Number(workMs) };
    const id = `close:${job.order}`;
    const added = await insist(client, 'DQ.SEND', queue, JSON.stringify(job), 'ID', id);
    console.log(added === null ? 'already there' : 'sent', id);
  }
}

// ---- worker ---------------------------------------------------------------------------------------------------------

/** The work, which a stop ends with an AbortError; false if somebody with a newer receipt did it before. */
async function closeOrder(client, queue, job, receipt) {
  if (job.broken) throw new Error('this order cannot be closed');
  await sleep(job.work_ms, undefined, { signal: stop.signal });
  return Number(await call(client, 'ZADD', `${queue}:closed`, 'GT', 'CH', receipt, job.order)) === 1;
}

async function work(client, heart, queue) {
  const consumer = `${hostname()}:${process.pid}`;
  const held = new Map();
  let done = [];
  const beat = setInterval(() => {
    if (held.size === 0) return;
    call(heart, 'DQ.TOUCH', queue, LEASE_MS, ...held.keys()).catch((error) =>
      console.log('no heartbeat:', error.message), // the next one may come in time
    );
  }, LEASE_MS / 3);

  while (!stopping()) {
    const ack = done.length ? ['ACK', done.length, ...done] : [];
    const options = ['COUNT', 5, 'BLOCK', BLOCK_MS, 'LEASE', LEASE_MS, 'CONSUMER', consumer];
    let batch;
    try {
      batch = await insist(client, 'DQ.FETCH', queue, ...options, ...ack);
    } catch (error) {
      if (isRefusal(error)) throw error;
      break;
    }
    done = [];
    for (const [id, receipt] of batch) held.set(receipt, id);
    for (const [id, receipt, attempt, payload] of batch) {
      if (stopping()) break; // still held: given back below
      try {
        const closed = await closeOrder(client, queue, JSON.parse(payload), receipt);
        done.push(receipt);
        console.log(closed ? 'done' : 'fenced', id, 'attempt', attempt);
      } catch (error) {
        if (error.name === 'AbortError') break;
        await insist(client, 'DQ.NACK', queue, receipt, 'ERROR', error.message);
        console.log('failed', id, 'attempt', attempt);
      }
      held.delete(receipt);
    }
  }

  clearInterval(beat);
  if (done.length) await call(client, 'DQ.ACK', queue, ...done);
  if (held.size) {
    await call(client, 'DQ.NACK', queue, ...held.keys(), 'SILENT');
    console.log('gave back', ...held.values());
  }
}

const [role, url, queue, ...numbers] = process.argv.slice(2);
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());
const client = await connect(url);
if (role === 'send') {
  await send(client, queue, ...numbers);
} else {
  const heart = await connect(url);
  await work(client, heart, queue);
}
// A connection that was lost and made anew may have left a timer behind, with which the program would never end.
process.exit();
