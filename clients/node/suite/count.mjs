/** Counts the cases of BullMQ's tests, and compares those that fail with the page. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

/**
 * Files about Redis itself, its keys, its clients or BullMQ's scripts. Files named `*.redis.test.ts` are about Redis,
 * too.
 */
const OF_REDIS = /\.redis$|^(cluster|connection|connection-closed-error|node-redis|ioredis-client|valkey-glide-client|adapter-conformance|bun-.*|postgres.*|script_loader|scripts)$/;
/** Cases in other files that look at keys or clients of Redis: they fail before they come to the backend. */
const LOOKS_AT_KEYS = /^TypeError: (Cannot read properties of undefined \(reading '(x?read|del|set|get|lrange|hget|hgetall|zrange|keys|xadd)'\)|client\.\w+ is not a function)|Trying to stub property 'bzpopmin' of undefined/;

const cases = (file) => (existsSync(`out/${file}.json`) ? JSON.parse(readFileSync(`out/${file}.json`)).testResults.flatMap(({ assertionResults }) => assertionResults) : []);
const escaped = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Runs the cases that have failed once more, each with nothing beside it. */
function again(file, clock) {
  const all = cases(file);
  const failed = all.filter(({ status, failureMessages: [why = ''] }) => status === 'failed' && !LOOKS_AT_KEYS.test(why));
  for (const one of failed) {
    const env = { ...process.env, DQ_SUITE_CLOCK: clock, DQ_SUITE_REPORT: `out/again.json` };
    try {
      execFileSync('npx', ['vitest', 'run', '--config', 'dq.config.ts', `tests/${file}.test.ts`, '-t', `^${escaped(one.fullName)}$`], { env, stdio: 'ignore', timeout: 60_000 });
      one.status = 'passed';
    } catch {
      // The test stays failed.
    }
  }
  if (all.length) writeFileSync(`out/${file}.json`, JSON.stringify({ testResults: [{ assertionResults: all }] }));
}

/** The misses that the page names: the file, a part of the name of the case, and whether it is about keys of Redis. */
function named(page) {
  const rows = readFileSync(page, 'utf8').matchAll(/^\| `(\w+): ([^`]+)` \| (.*) \|$/gm);
  return [...rows].map(([, file, part, why]) => ({ file, part, ofRedis: why.startsWith('keys of Redis') }));
}

function sum(page, version) {
  const misses = named(page);
  let passed = 0;
  let ofRedis = 0;
  const failed = [];
  const unnamed = [];
  for (const file of readdirSync('out').filter((name) => /\.json$/.test(name) && name !== 'again.json').map((name) => name.slice(0, -5)).sort()) {
    const all = cases(file);
    if (!all.length) unnamed.push(`${file}: did not run`);
    for (const { status, fullName, failureMessages: [why = ''] = [] } of all) {
      if (status === 'passed') passed++;
      else if (status !== 'failed') continue;
      else {
        const miss = misses.find((one) => one.file === file && fullName.includes(one.part));
        if (miss?.ofRedis || LOOKS_AT_KEYS.test(why)) {
          ofRedis++;
          continue;
        }
        failed.push(`${file}: ${fullName}`);
        if (!miss) unnamed.push(`${file}: ${fullName} | ${why.split('\n')[0]}`);
      }
    }
  }
  const share = (100 * passed) / (passed + failed.length);
  for (const one of failed) console.log(`  miss ${one}`);
  for (const one of unnamed) console.log(`  NOT IN THE PAGE ${one}`);
  console.log(`==> BullMQ ${version}: ${passed} of ${passed + failed.length} cases pass (${share.toFixed(1)} %); ${ofRedis} more look at keys of Redis`);
  process.exitCode = unnamed.length ? 1 : 0;
}

const [what, ...words] = process.argv.slice(2);
if (what === 'takes') process.exitCode = OF_REDIS.test(words[0]) ? 1 : 0;
else if (what === 'again') again(...words);
else sum(...words);
