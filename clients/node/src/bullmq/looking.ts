/** Reads jobs and counts. */

import type { JobJson, JobState, JobType } from 'bullmq';

import { list, shaped, text } from '../replies.js';
import type { Word } from '../words.js';
import { LIFO, PRIORITIZED, type Seen, jobSeen, seen, stateOf } from './job.js';
import type { Making } from './making.js';
import type { Place } from './place.js';

/** The states of dq that a state of BullMQ is. */
const STATES: Record<string, readonly string[]> = {
  wait: ['ready', 'blocked'],
  waiting: ['ready', 'blocked'],
  prioritized: ['ready', 'blocked'],
  active: ['running'],
  delayed: ['delayed', 'retry'],
  completed: ['finished'],
  failed: ['dead'],
  'waiting-children': ['held'],
};

export class Looking {
  constructor(
    readonly place: Place,
    readonly making: Making,
  ) {}

  async get(id: string): Promise<Seen | null> {
    const found = seen(await this.place.dq('GET', id));
    return found && found.state !== 'cancelled' ? found : null;
  }

  async job(id: string): Promise<JobJson | undefined> {
    const found = await this.get(id);
    if (!found) return undefined;
    const job = jobSeen(found);
    if (found.reason === 'timeouts' && !found.error) job.failedReason = 'job stalled more than allowable limit';
    if (found.reason === 'children' && !found.error) job.failedReason = await this.#deadChild(id);
    return job;
  }

  async #deadChild(id: string): Promise<string> {
    const [, children] = list(await this.place.dq('CHILDREN', id, 'COUNT', '1000'));
    for (const child of list(children)) {
      const { key, id: of, state } = shaped<{ key: string; id: string; state: string }>(child);
      if (state === 'dead') return `child ${key}:${of} failed`;
    }
    return 'a child failed';
  }

  async state(id: string): Promise<JobState | 'unknown'> {
    const found = await this.get(id);
    return found ? stateOf(found) : 'unknown';
  }

  async isIn(state: string, id: string): Promise<boolean> {
    const found = await this.get(id);
    if (!STATES[state]) throw new Error(`Unknown job state: ${state}`);
    if (!found) return false;
    return stateOf(found) === (state === 'wait' ? 'waiting' : state);
  }

  /** The end of the job: 0 not yet, 1 completed, 2 failed, -1 there is no such job. */
  async finished(id: string, withValue: boolean): Promise<number | [number, string]> {
    const job = await this.get(id);
    const status = !job ? -1 : job.state === 'finished' ? 1 : job.state === 'dead' ? 2 : 0;
    if (!withValue) return status;
    if (status === -1) return [-1, `Missing key for job ${this.place.of(id)}. isFinished`];
    if (status === 1) return [1, job!.result ?? 'null'];
    return status === 2 ? [2, (await this.job(id))?.failedReason ?? ''] : [0, ''];
  }

  async counts(types: readonly JobType[], before?: number): Promise<number[]> {
    await this.making.make();
    const info = await this.making.refresh();
    const of = (state: string) => Number(info[state] ?? 0);
    const prioritized = of('groups') > 0 ? (await Promise.all(STATES.prioritized!.map((state) => this.#ids(state, Infinity, ['GROUP', PRIORITIZED])))).flat().length : 0;
    const waiting = of('ready') + of('blocked') - prioritized;
    const counts: Record<string, number> = {
      active: of('running'),
      completed: of('finished'),
      failed: of('dead'),
      delayed: of('delayed') + of('retry'),
      wait: waiting,
      waiting,
      prioritized,
      'waiting-children': of('held'),
    };
    if (before !== undefined && types.includes('delayed')) counts.delayed = (await this.ids('delayed', before)).length;
    return types.map((type) => counts[type] ?? 0);
  }

  async countsPerPriority(priorities: readonly number[]): Promise<number[]> {
    const found = await this.#waiting(PRIORITIZED);
    const [waiting] = priorities.includes(0) ? await this.counts(['waiting']) : [0];
    return priorities.map((one) => (one === 0 ? waiting! : found.filter(({ score }) => Math.ceil(Number(score)) === one).length));
  }

  /** The due messages of a group. */
  async #waiting(group: string): Promise<Seen[]> {
    return (await this.#all('ready', ['GROUP', group])).concat(await this.#all('blocked', ['GROUP', group]));
  }

  /** All messages of a state. */
  async #all(state: string, words: readonly Word[] = []): Promise<Seen[]> {
    const found: Seen[] = [];
    for (let cursor = ''; cursor !== '0'; ) {
      const page = list(await this.place.dq('LIST', state, 'COUNT', '1000', ...words, ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      found.push(...list(page[1]).map((one) => shaped<Seen>(one)));
    }
    return found;
  }

  /** The ids of a state, up to `most` of them; those that are due before `before`. */
  async #ids(state: string, most: number, words: readonly Word[]): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor = ''; cursor !== '0' && ids.length < most; ) {
      const count = String(Math.min(10_000, most - ids.length));
      const page = list(await this.place.dq('LIST', state, 'COUNT', count, 'IDS', ...words, ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      ids.push(...list(page[1]).map(text));
    }
    return ids;
  }

  /** The ids of the delayed jobs that are due before a time. */
  async ids(state: 'delayed', before: number): Promise<string[]> {
    const ids: string[] = [];
    for (const one of STATES[state]!) {
      for (let cursor = ''; cursor !== '0'; ) {
        const page = list(await this.place.dq('FIND', one, 'UNTIL', String(before), 'IDS', ...(cursor ? ['CURSOR', cursor] : [])));
        cursor = text(page[0]);
        ids.push(...list(page[1]).map(text));
      }
    }
    return ids;
  }

  /** The ids of states from one rank to another, which may count from the end. */
  async range(type: string, start: number, end: number, asc: boolean): Promise<string[]> {
    const most = start >= 0 && end >= 0 ? end + 1 : Infinity;
    const order = asc ? [] : ['REV'];
    const found = await this.#found(type, most, order, asc);
    const from = start < 0 ? Math.max(0, found.length + start) : start;
    const to = end < 0 ? found.length + end : end;
    return found.slice(from, to + 1);
  }

  async #found(type: string, most: number, order: readonly Word[], asc: boolean): Promise<string[]> {
    const states = STATES[type] ?? [];
    const lined = type in STATES && states[0] === 'ready';
    const info = await this.making.refresh();
    if (lined && Number(info.groups) > 0) {
      const all = (await Promise.all(states.map((state) => this.#all(state)))).flat();
      const mine = all.filter(({ group }) => (group === PRIORITIZED) === (type === 'prioritized'));
      const rank = ({ group, score }: Seen) => (group === LIFO ? -1e18 + Number(score) : group === PRIORITIZED ? Number(score) : 0);
      mine.sort((a, b) => rank(a) - rank(b));
      const ids = mine.map(({ id }) => text(id));
      return asc ? ids : ids.reverse();
    }
    if (type === 'prioritized') return [];
    if (type === 'delayed' && Number(info.retry) > 0) {
      const all = (await Promise.all(states.map((state) => this.#all(state)))).flat();
      const ids = all.sort((a, b) => a.dueAt - b.dueAt).map(({ id }) => text(id));
      return asc ? ids : ids.reverse();
    }
    let ids: string[] = [];
    for (const state of states) if (ids.length < most && Number(info[state] ?? 1) > 0) ids = ids.concat(await this.#ids(state, most - ids.length, order));
    return ids;
  }
}
