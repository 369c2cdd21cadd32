// The program of peers.py on BullMQ: `node bullmq.cjs send PORT` sends each line of its input, `work PORT` works.
const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');
const readline = require('readline');

const [, , what, port] = process.argv;
const lease = Number(process.env.LEASE);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };

if (what === 'send') {
  const queue = new Queue('effects', { connection });
  readline.createInterface({ input: process.stdin }).on('line', (id) => queue.add('work', { id }));
} else {
  const redis = new Redis(connection);
  const processor = async (job) => {
    await new Promise((resolve) => setTimeout(resolve, Number(process.env.WORK)));
    await redis.multi().incrby('count', 1).sadd('done', job.data.id).exec();
  };
  const options = { connection, lockDuration: lease, stalledInterval: lease / 2, maxStalledCount: 1000 };
  // A worker that has lost its lock tells of it; the job is another's then.
  new Worker('effects', processor, options).on('error', () => {});
}
