// The work that every worker here does with a job, and the way in which every producer sends jobs. See python/job.py.

import { createInterface } from 'node:readline';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { BENCH_PORT, BENCH_CONCURRENCY = 1, BENCH_SLEEP_MS = 0, BENCH_FIRST = 1, BENCH_LAST = 0, BENCH_STAMPED } = process.env;

export const port = Number(BENCH_PORT);
export const concurrency = Number(BENCH_CONCURRENCY);
const pause = Number(BENCH_SLEEP_MS);
const first = Number(BENCH_FIRST);
const last = Number(BENCH_LAST);
const late = [];
let count = 0;

/** Unix time in microseconds. */
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1000);

export function arrived(payload) {
  if (BENCH_STAMPED === '1') late.push(now() - Number(payload));
  count++;
  if (count === first) tell('first');
  if (count === last) tell(['last', ...late].join(' '));
}

/** The handler of a job. */
export function handle(payload) {
  arrived(payload);
  if (pause) return sleep(pause);
}

/** Calls a function with the payload and the delay (ms) of each job that is to be sent. */
export async function send(one) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [delay, payload] = line.split(' ');
    await one(payload === '@' ? String(now() + Number(delay) * 1000) : payload, Number(delay));
  }
  tell('sent');
}

function tell(line) {
  writeSync(1, `${line}\n`);
}
