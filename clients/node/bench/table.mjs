/** Prints the medians of a run as a table of Markdown, with the options of the run. */

import { readFileSync } from 'node:fs';

const [results, kills] = process.argv.slice(2);
const rounds = readFileSync(results, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const of = (backend, placement, read) => {
  const all = rounds.filter((round) => round.backend === backend && round.placement === placement).map(read).sort((a, b) => a - b);
  return all[Math.floor(all.length / 2)];
};
const row = (what, read, digits, goal, met, placement = 'apart') => {
  const [dq, redis] = [of('dq', placement, read), of('redis', placement, read)];
  console.log(`| ${what} | ${dq.toFixed(digits)} | ${redis.toFixed(digits)} | ${(dq / redis).toFixed(2)} x | ${goal} | ${met(dq, redis) ? 'PASS' : 'MISS'} |`);
};

console.log('| | dq | Redis | | goal | |\n|---|---|---|---|---|---|');
for (const [placement, where] of [['together', 'one processor'], ['apart', 'all processors']]) {
  for (const n of [1, 10, 100]) row(`${where}: jobs a second of a worker, concurrency ${n}`, (round) => round[n].rate, 0, '>= 2 x', (dq, redis) => dq >= 2 * redis, placement);
  for (const n of [1, 10, 100]) row(`${where}: server CPU a job, us, concurrency ${n}`, (round) => round[n].cpu, 1, '<= 0.3 x', (dq, redis) => dq <= 0.3 * redis, placement);
}
row('p99 lateness of delayed jobs, ms', ({ late }) => late, 0, '<= 10 ms', (dq) => dq <= 10);
row('bytes of a delayed job, with its 100', ({ bytes }) => bytes, 0, '<= 0.4 x', (dq, redis) => dq <= 0.4 * redis);
const { kills: count, jobs, lost, again, leases } = JSON.parse(readFileSync(kills, 'utf8'));
console.log(`\n${count} SIGKILLs of workers, which held ${leases} of ${jobs} jobs: ${lost} lost, ${again} run again after completion.`);
