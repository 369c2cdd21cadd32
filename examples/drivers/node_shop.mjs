/*
 * A shop with the Node package: events of orders over a family, a price that a service answers, and a worker that is
 * killed in the middle of its work.
 *
 *     (cd clients/node && npm ci && npm pack)
 *     npm install ./clients/node/dq-queue-0.1.0.tgz ioredis
 *     DQ_URL=redis://127.0.0.1:6379 node examples/drivers/node_shop.mjs
 *
 * The program starts three workers of itself, kills one of them at its work, and checks what has been done. It ends with
 * the exit code 1 if something is wrong. It takes some five seconds.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Family, Queue, Worker } from 'dq-queue';
import { Redis } from 'ioredis';

const URL = process.env.DQ_URL ?? 'redis://127.0.0.1:6379';
const ORDERS = 40;
const STEPS = ['created', 'paid', 'packed', 'sent'];
const LEDGER = 'node_shop:ledger';

const redis = new Redis(URL);
const orders = new Family(redis, 'node_shop', 8);
const prices = new Queue(redis, 'node_shop:prices');

/** Handles the events of orders and the questions for prices, until SIGTERM. */
async function work() {
  const events = new Worker(
    orders,
    {
      // The receipt is a fencing token: it grows with each delivery, so the ledger shows who wrote last.
      step: async ({ data: { order, step }, receipt, attempt }, { signal }) => {
        await redis.rpush(LEDGER, JSON.stringify({ order, step, receipt, attempt }));
        if (order === 'order-7' && step === 'paid' && attempt === 1) {
          process.send('in the middle of order-7');
          await sleep(60_000, undefined, { signal });
        }
      },
    },
    // Others get the messages of a killed worker after a second.
    { concurrency: 10, lease: 1000, block: 500 },
  );
  const answers = new Worker(prices, { price: ({ data }) => data.amount * 3 }, { lease: 1000, block: 500 });
  await Promise.all([events.run({ signals: true }), answers.run({ signals: true })]);
}

async function shop() {
  await redis.del(LEDGER, ...orders.queues().map(({ key }) => key), prices.key);
  const workers = [1, 2, 3].map(() => spawn(process.execPath, [fileURLToPath(import.meta.url), 'work'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
  const reports = workers.map(async (worker) => {
    const [report] = await once(worker, 'message');
    worker.kill('SIGKILL');
    return report;
  });
  await orders.ensure({ dedup: 60_000 });
  const sent = STEPS.flatMap((step) => Array.from({ length: ORDERS }, (_, n) => ({ order: `order-${n}`, step })));
  for (const { order, step } of sent) await orders.add('step', { order, step }, { group: order, id: `${order}:${step}` });
  // A send that is repeated adds nothing.
  const again = await orders.add('step', {}, { group: 'order-1', id: 'order-1:sent' });

  await prices.add('price', { amount: 14 }, { id: 'question', retain: 60_000 });
  const answer = await prices.wait('question', 20_000);
  await Promise.race(reports);
  for (let left = 1; left > 0; await sleep(50)) {
    const { ready, blocked, running, retry } = await orders.info();
    left = ready + blocked + running + retry;
  }

  const ledger = (await redis.lrange(LEDGER, 0, -1)).map((line) => JSON.parse(line));
  const steps = (order) => ledger.filter((line) => line.order === order).map(({ step }) => step);
  const twice = ledger.length - new Set(ledger.map(({ order, step }) => order + step)).size;
  const interrupted = ledger.filter(({ order, step }) => order === 'order-7' && step === 'paid');
  const checks = {
    'every step of every order was done': new Set(ledger.map(({ order, step }) => order + step)).size === sent.length,
    'in order': Array.from({ length: ORDERS }, (_, n) => new Set(steps(`order-${n}`))).every((done) => [...done].join() === STEPS.join()),
    'the killed worker had at most ten, and only these ran again': twice >= 1 && twice <= 10,
    'its second delivery had a higher receipt': interrupted.length === 2 && interrupted[0].receipt < interrupted[1].receipt,
    'a taken id was not sent again': again === null,
    'the price was answered': answer?.state === 'finished' && JSON.parse(answer.result) === 42,
  };
  for (const worker of workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    worker.kill('SIGTERM');
    const [code] = await once(worker, 'exit');
    checks['the other workers stopped well'] = code === 0 && checks['the other workers stopped well'] !== false;
  }
  for (const [check, holds] of Object.entries(checks)) console.log(holds ? 'ok ' : 'NOT', check);
  await redis.del(LEDGER, ...orders.queues().map(({ key }) => key), prices.key);
  return Object.values(checks).every(Boolean) ? 0 : 1;
}

const code = process.argv[2] === 'work' ? await work() : await shop();
orders.close();
prices.close();
redis.disconnect();
process.exit(code);
