/** Adds jobs. */

import type { JobJson, ParentKeyOpts } from 'bullmq';

import { text } from '../replies.js';
import type { Word } from '../words.js';
import { adopt } from './adopting.js';
import { dueWords, lineOf, payloadOf, sendWords } from './job.js';
import { joining } from './late.js';
import type { Making } from './making.js';
import type { Numbers } from './numbers.js';
import { MOST_STEPS, type Place } from './place.js';

/** The most bytes of jobs that are sent in one step, if they are not one job. */
const MOST_BYTES = 8 * 1024 * 1024;

/** The position of the payload in a command. */
const PAYLOAD = 2;

export interface Entry {
  job: JobJson;
  jobId: string;
  parentKeyOpts?: ParentKeyOpts;
}

/**
 * Adds a job, or finds the one that has its deduplication id. A message of dq has no second name beside its id, so a
 * separate key has the id of the job with the deduplication id. The key is valid until that job has ended, or for `ttl`.
 * The keys: the queue, that key. The words: the id of the job, ttl, extend, replace, keepLastIfActive, reschedule, its
 * delay, then the words of DQ.SEND. Replies with the id of the valid job, and the outcome.
 */
const DEDUPLICATED = `
local queue, name, id, ttl = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local extend, replace, last, reschedule = ARGV[3] == '1', ARGV[4] == '1', ARGV[5] == '1', ARGV[6] == '1'
local send = {'DQ.SEND', queue, unpack(ARGV, 8)}
local function call_it_so(keep)
  if keep then redis.call('SET', name, id, 'KEEPTTL')
  elseif ttl > 0 and not last then redis.call('SET', name, id, 'PX', ttl)
  else redis.call('SET', name, id) end
end
local old, message = redis.call('GET', name), {}
if old then
  local fields = redis.call('DQ.GET', queue, old) or {}
  for at = 1, #fields, 2 do message[fields[at]] = fields[at + 1] end
  local state = message.state
  local ended = not state or state == 'finished' or state == 'dead' or state == 'cancelled'
  if ended and redis.call('PTTL', name) < 0 then old = false end
end
if not old then
  redis.call(unpack(send))
  call_it_so(false)
  return {id, 'added'}
end
local delayed = message.state == 'delayed' or message.state == 'retry'
if replace and delayed then
  local pattern = string.gsub(old, '[%*%?%[%]\\\\]', '\\\\%0')
  local due = message['due-at']
  redis.call('DQ.FIND', queue, message.state, 'ID', pattern, 'SINCE', due, 'UNTIL', due + 1, 'DO', 'PURGE')
  redis.call(unpack(send))
  call_it_so(ttl > 0 and not extend and not last)
  return {id, 'replaced', old}
end
if last and message.state == 'running' then
  send[5] = old
  send[#send + 1] = 'REPLACE'
  send[#send + 1] = 'RERUN'
  redis.call(unpack(send))
  redis.call('PERSIST', name)
  return {old, 'deduplicated'}
end
if reschedule and delayed and not replace then redis.call('DQ.RESCHEDULE', queue, old, 'DELAY', ARGV[7]) end
if extend and ttl > 0 and not replace and not last then redis.call('PEXPIRE', name, ttl) end
return {old, replace and 'kept' or 'deduplicated'}`;

export class Adding {
  constructor(
    readonly place: Place,
    readonly making: Making,
    readonly numbers: Numbers,
  ) {}

  async one({ job, jobId, parentKeyOpts }: Entry): Promise<string> {
    await this.making.make();
    const id = jobId || (await this.numbers.take(1))[0]!;
    await this.#line(job);
    if (job.opts.deduplication) return this.#deduplicated(job, id);
    let sent: unknown;
    if (job.parent?.id) {
      const { commands, keys } = await joining(this.place, id, job, parentKeyOpts?.parentKey);
      [sent] = (await this.place.together([...commands, this.#send(job, id, jobId)], [this.place.key, ...keys])).slice(-1);
    } else if (jobId) {
      [sent] = await this.place.together([this.#send(job, id, jobId)]);
    } else {
      sent = await this.place.dq('SEND', ...this.words(job, id));
    }
    if (sent === null && job.parent?.id) await adopt(this.place, id, job);
    if (sent === null) await this.making.publish('duplicated', 'jobId', id);
    return id;
  }

  async many(entries: readonly Entry[]): Promise<string[]> {
    await this.making.make();
    if (entries.some(({ job }) => job.opts.deduplication || job.parent)) {
      const ids: string[] = [];
      for (const entry of entries) ids.push(await this.one(entry));
      return ids;
    }
    for (const { job } of entries) await this.#line(job);
    const fresh = await this.numbers.take(entries.filter(({ jobId }) => !jobId).length);
    let used = 0;
    const ids = entries.map(({ jobId }) => jobId || fresh[used++]!);
    for (let at = 0; at < ids.length; ) {
      const step = this.#step(entries, ids, at);
      const replies = await this.place.together(step);
      for (const [nth, reply] of replies.entries()) {
        if (reply === null) await this.making.publish('duplicated', 'jobId', ids[at + nth]!);
      }
      at += step.length;
    }
    return ids;
  }

  /** The commands of one step, from an entry on. */
  #step(entries: readonly Entry[], ids: readonly string[], from: number): Word[][] {
    const step: Word[][] = [];
    for (let at = from, bytes = 0; at < ids.length && step.length < MOST_STEPS; at++) {
      const words = this.#send(entries[at]!.job, ids[at]!, entries[at]!.jobId);
      bytes += words[PAYLOAD]!.length;
      if (step.length && bytes > MOST_BYTES) break;
      step.push(words);
    }
    return step;
  }

  async #line(job: JobJson): Promise<void> {
    const group = lineOf(job.opts);
    if (group) await this.making.line(group);
  }

  /** The command that adds a job. One that was given its id is not added if that is taken. */
  #send(job: JobJson, id: string, given: string): Word[] {
    return [given ? '?DQ.SEND' : 'DQ.SEND', this.place.key, ...this.words(job, id)];
  }

  /** The words of DQ.SEND behind the key. */
  words(job: JobJson, id: string): Word[] {
    return [payloadOf(job), 'ID', id, ...sendWords(job), ...dueWords(job)];
  }

  async #deduplicated(job: JobJson, id: string): Promise<string> {
    const { id: name, ttl = 0, extend, replace, keepLastIfActive, reschedule } = job.opts.deduplication as {
      id: string;
      ttl?: number;
      extend?: boolean;
      replace?: boolean;
      keepLastIfActive?: boolean;
      reschedule?: boolean;
    };
    const flags = [extend, replace, keepLastIfActive, reschedule].map((on) => (on ? '1' : '0'));
    const key = this.place.of(`de:${name}`);
    const reply = await this.place.call(
      'EVAL', DEDUPLICATED, '2', this.place.key, key, id, String(ttl), ...flags, String(job.delay ?? job.opts.delay ?? 0), ...this.words(job, id),
    );
    const [counts, what, old] = (reply as unknown[]).map(text);
    if (what === 'deduplicated') {
      await this.making.publish('deduplicated', 'jobId', counts!, 'deduplicationId', name, 'deduplicatedJobId', id);
    } else if (what === 'replaced') {
      await this.making.publish('removed', 'jobId', old!, 'prev', 'delayed');
      await this.making.publish('deduplicated', 'jobId', id, 'deduplicationId', name, 'deduplicatedJobId', old!);
    }
    return counts!;
  }
}
