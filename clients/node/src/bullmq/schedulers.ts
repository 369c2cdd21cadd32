/**
 * Job schedulers. BullMQ computes the next time itself, by any strategy that an application gives it, each time that a
 * job of the scheduler begins. So a scheduler is its definition and one delayed job, as the interface has it.
 */

import type { JobJson, JobsOptions, RepeatableOptions } from 'bullmq';

import { text, texts } from '../replies.js';
import type { Adding } from './adding.js';
import { SCHEDULER_BUSY, SCHEDULER_TAKEN, failure } from './failure.js';
import { type Seen, seen } from './job.js';
import type { Place } from './place.js';
import type { Removing } from './removing.js';

/** The number of slots among which a free one is searched. */
const SLOTS = 32;

interface Definition {
  fields: Record<string, string>;
  next: number;
  /** The id of its next job. */
  job: string;
}

export class Schedulers {
  constructor(
    readonly place: Place,
    readonly adding: Adding,
    readonly removing: () => Removing,
  ) {}

  get #key(): string {
    return this.place.of('repeat');
  }

  async get(id: string): Promise<Definition | null> {
    const found = await this.place.call('HGET', this.#key, id);
    return found === null ? null : (JSON.parse(text(found)) as Definition);
  }

  async #put(id: string, definition: Definition): Promise<void> {
    await this.place.call('HSET', this.#key, id, JSON.stringify(definition));
  }

  /** Whether a message is the next job of a scheduler. */
  async has(found: Seen): Promise<boolean> {
    const [, id] = /^repeat:(.*):\d+$/.exec(found.id) ?? [];
    return id !== undefined && found.state !== 'finished' && found.state !== 'dead' && (await this.get(id))?.job === found.id;
  }

  async add(id: string, nextMillis: number, data: string, template: JobsOptions, repeat: RepeatableOptions, opts: JobsOptions): Promise<[string, number]> {
    await this.adding.making.make();
    const before = await this.get(id);
    const now = Date.now();
    const { every } = repeat;
    const same = before && Number(before.fields.every) === every;
    let next = nextMillis;
    let offset = repeat.offset ?? undefined;
    if (every) [next, offset] = nextOf(same ? before.next : undefined, every, now, offset ?? 0, repeat.startDate);
    const tookBack = before !== null && (await this.#takeBack(before));
    if (tookBack && every && same) next = before.next;
    if (tookBack) offset = repeat.offset ?? undefined;
    let job = `repeat:${id}:${next}`;
    for (let slot = 0; await this.#isTaken(job); slot++) {
      if (!every && tookBack) break;
      if (!every) throw failure(SCHEDULER_TAKEN, job, 'addJobScheduler');
      if (slot === SLOTS) throw failure(SCHEDULER_BUSY, job, 'addJobScheduler');
      next += every;
      job = `repeat:${id}:${next}`;
    }
    const fields: Record<string, string> = { name: repeat.name };
    for (const name of ['tz', 'limit', 'pattern', 'startDate', 'endDate', 'every'] as const) if (repeat[name] !== undefined) fields[name] = String(repeat[name]);
    if (offset !== undefined || !tookBack) fields.offset = String(offset ?? 0);
    else if (before?.fields.offset) fields.offset = before.fields.offset;
    if (Object.keys(template ?? {}).length) fields.opts = JSON.stringify(template);
    if (data && data !== '{}') fields.data = data;
    fields.ic = before?.fields.ic ?? '1';
    await this.#put(id, { fields, next, job });
    const delay = Math.max(0, next - now);
    await this.#send(id, job, repeat.name, data, opts, now, delay);
    return [job, delay];
  }

  /** Removes the job that a scheduler has planned. Returns whether it was there and had not begun. */
  async #takeBack(before: Definition): Promise<boolean> {
    const planned = seen(await this.place.dq('GET', before.job));
    if (!planned || !['delayed', 'ready', 'blocked', 'retry'].includes(planned.state)) return false;
    await this.removing().forget(planned);
    return true;
  }

  async #isTaken(job: string): Promise<boolean> {
    return seen(await this.place.dq('GET', job)) !== null;
  }

  async #send(id: string, jobId: string, name: string, data: string, opts: JobsOptions, now: number, delay: number): Promise<void> {
    const job: JobJson = {
      id: jobId,
      name,
      data: data || '{}',
      opts: { ...opts, delay, jobId },
      progress: 0,
      attemptsMade: 0,
      attemptsStarted: 0,
      timestamp: now,
      delay,
      failedReason: '',
      returnvalue: '',
      stalledCounter: 0,
      repeatJobKey: id,
    };
    await this.adding.one({ job, jobId });
  }

  /** Plans the next job, when the one that was planned begins. Returns its id. */
  async go(id: string, nextMillis: number, opts: JobsOptions & { repeat?: { every?: number; offset?: number } }, producer: string | undefined): Promise<string | null> {
    const before = await this.get(id);
    if (!before) return null;
    const now = Date.now();
    const every = Number(before.fields.every ?? opts.repeat?.every ?? 0);
    let next = nextMillis;
    if (every) [next] = nextOf(before.next, every, now, Number(before.fields.offset ?? opts.repeat?.offset ?? 0), undefined);
    if (producer !== before.job) return null;
    const job = `repeat:${id}:${next}`;
    if (await this.#isTaken(job)) {
      await this.adding.making.publish('duplicated', 'jobId', job);
      return null;
    }
    await this.#put(id, { fields: { ...before.fields, ic: String(Number(before.fields.ic ?? 1) + 1) }, next, job });
    await this.#send(id, job, before.fields.name ?? id, before.fields.data ?? '{}', opts, now, Math.max(0, next - now));
    return job;
  }

  /** Removes a scheduler and its planned job. Returns 0 if it was there, and 1 if not. */
  async remove(id: string): Promise<number> {
    const before = await this.get(id);
    if (!before) return 1;
    const planned = seen(await this.place.dq('GET', before.job));
    await this.place.call('HDEL', this.#key, id);
    if (planned?.state === 'delayed') await this.removing().forget(planned);
    return 0;
  }

  /** The ids and next times of the schedulers, in the order of the times. */
  async range(start: number, end: number, asc: boolean): Promise<string[]> {
    const found = Object.entries(texts(await this.place.call('HGETALL', this.#key)));
    const all = found.map(([id, definition]): [string, number] => [id, (JSON.parse(definition) as Definition).next]);
    all.sort((a, b) => (asc ? a[1] - b[1] : b[1] - a[1]));
    return all.slice(start, end < 0 ? all.length + end + 1 : end + 1).flatMap(([id, next]) => [id, String(next)]);
  }

  async count(): Promise<number> {
    return Number(await this.place.call('HLEN', this.#key));
  }
}

/** The next time of a scheduler with `every`, and how far it is behind the start of its slot. */
function nextOf(before: number | undefined, every: number, now: number, offset: number, start: number | undefined): [number, number] {
  const slot = (at: number) => Math.floor(at / every) * every;
  const aligned = slot(now) + offset > now ? slot(now) + offset : slot(now) + offset + every;
  let next: number;
  if (before === undefined) next = start !== undefined ? Math.max(start, now) : offset > 0 ? aligned : now;
  else next = before + every < now ? aligned : before + every;
  return [Math.floor(next), Math.floor(offset || next - slot(next))];
}
