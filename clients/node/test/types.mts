/** A program whose types hold, and mistakes that the compiler must find. It is compiled and not run. */

import { Family, Follow, type Message, Park, Queue, Worker } from 'dq-queue';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';

type Jobs = { welcome: { name: string }; sum: number[] };

const queue = new Queue<Jobs>(new Redis(), 'mails');
new Queue(createClient(), 'q');
new Queue(createClient({ RESP: 2 }), 'q');
new Queue(new Cluster([]), 'q');
new Queue(createCluster({ rootNodes: [] }), 'q');

await queue.add('welcome', { name: 'ann' }, { delay: 5, backoff: ['EXP', 100], at: new Date() });
const worker = new Worker<Jobs>(
  queue,
  {
    welcome: ({ data }) => data.name.length,
    sum: async ({ data }, { signal }) => (signal.aborted ? 0 : data.reduce((a, b) => a + b)),
    '*': (message: Message) => void message.text,
  },
  { concurrency: 5 },
);
worker.on('failed', (message, error) => console.log(message.id, error));
await worker.run({ signal: new AbortController().signal });

const family = new Family<Jobs>(new Redis(), 'events', 64);
new Worker(family, { sum: ({ data }) => data.length });
new Worker(queue, (message) => message.text);
new Worker(queue, ({ signal }) => {
  if (signal === null) throw new Park('', { for: 60_000, note: 'asked' });
  return new Follow([{ payload: 'x', to: 'parcels', group: 'g', park: true, limits: ['user-7'], cost: 3 }, { signal: 'a', data: 'go' }]);
});
await queue.limit('user-*', { concurrency: 1, rates: [{ limit: 5, per: 1000 }] });
const dueAt: number | undefined = (await queue.get('a'))?.dueAt;
for await (const { error } of queue.list('dead')) console.log(error, dueAt);
await queue.schedule('nightly', 'x', { cron: '0 3 * * *', type: 'sum' });

// @ts-expect-error: a field that the data does not have
await queue.add('welcome', { nam: 'ann' });
// @ts-expect-error: a type that there is not
await queue.add('farewell', {});
// @ts-expect-error: an option that there is not
await queue.send('x', { colour: 'red' });
// @ts-expect-error: a field that the data does not have
new Worker<Jobs>(queue, { welcome: ({ data }) => data.age });
// @ts-expect-error: a handler for a type that there is not
new Worker<Jobs>(queue, { farewell: () => {} });
// @ts-expect-error: what is neither a message nor a signal
new Follow({ id: 'a' });
// @ts-expect-error: what is not a client
new Queue(new Date(), 'q');
// @ts-expect-error: a state that there is not
queue.list('sleeping');
// @ts-expect-error: a schedule without a time
await queue.schedule('nightly', 'x', {});
