/** Makes the queue with the options that BullMQ's jobs need, and changes them as its options say. */

import type { WorkerOptions } from 'bullmq';

import { CommandError } from '../errors.js';
import { shaped } from '../replies.js';
import type { Word } from '../words.js';
import { LIFO, PRIORITIZED } from './job.js';
import type { Place } from './place.js';

/** For ever. The greatest number that is exact. */
export const EVER = String(Number.MAX_SAFE_INTEGER);

/** The jobs that are kept after their end, in BullMQ's form. */
export type Keep = boolean | number | { age?: number; count?: number; limit?: number } | undefined;

/**
 * BullMQ counts attempts itself, keeps ended jobs, and holds no job back behind another one that waits for its retry.
 */
const OPTIONS: Word[] = [
  ...['RETRIES', '-1', 'BACKOFF', 'FIXED', '0', 'ONRETRY', 'SKIP', 'RETAIN', EVER, 'RETAINCOUNT', '0'],
];

/** Whether the events of a queue are told, as far as this process knows. By key. */
const telling = new Set<string>();

/** The first field of an entry of BullMQ's own in the event stream, so that the server takes it for one of dq. */
export const OWN_ENTRY: readonly string[] = ['dq', 'client'];

export class Making {
  #made: Promise<void> | undefined;
  /** The options that this process has set, by name. */
  readonly #set = new Map<string, string>();
  #worker: Partial<WorkerOptions> = {};
  /** How many messages had been sent to the queue. A smaller number is another queue's. */
  #sent = 0;

  constructor(readonly place: Place) {}

  /** Makes the queue, if it is not there. Called before the first command of a backend. */
  make(): Promise<void> {
    this.#made ??= this.#make().catch((error: unknown) => {
      this.#made = undefined;
      throw error;
    });
    return this.#made;
  }

  async #make(): Promise<void> {
    if (!(await this.place.dq('CREATE', 'NX', ...this.#options))) await this.refresh();
  }

  /** Lets any number of jobs of a group run, which only gives them their order. */
  async line(group: string): Promise<void> {
    if (this.#set.has(group)) return;
    await this.place.dq('GROUPSET', group, 'CONCURRENCY', EVER);
    this.#set.set(group, EVER);
  }

  /**
   * Finds out whether somebody listens to the events of the queue. One that has been deleted is made again, and one that
   * somebody has made in the meantime gets the options that jobs and this worker need.
   */
  async refresh(): Promise<Record<string, unknown>> {
    let info = await this.#info();
    if (!info) {
      await this.#anew(() => this.place.dq('CREATE', 'NX', ...this.#options));
      info = (await this.#info()) ?? {};
    } else if (Number(info.retries) !== -1) {
      await this.#anew(() => this.place.dq('ALTER', ...OPTIONS));
    } else if (Number(info.sent) < this.#sent) {
      await this.#anew(async () => {});
    }
    this.#sent = Number(info.sent ?? 0);
    if (info.events) telling.add(this.place.key);
    else telling.delete(this.place.key);
    return info;
  }

  async #info(): Promise<Record<string, unknown> | undefined> {
    try {
      return shaped<Record<string, unknown>>(await this.place.dq('INFO'));
    } catch (error) {
      if (error instanceof CommandError && error.message.includes('no such queue')) return undefined;
      throw error;
    }
  }

  /** Gives the queue the options of jobs, and then those of the worker. */
  async #anew(make: () => Promise<unknown>): Promise<void> {
    this.#set.clear();
    await make();
    // Other processes believe that these are set.
    for (const group of [PRIORITIZED, LIFO]) await this.line(group);
    await this.work(this.#worker);
  }

  get #options(): Word[] {
    return [...OPTIONS, ...(this.place.timed ? ['CLOCK', 'MANUAL'] : [])];
  }

  /** Whether the queue tells its events to a stream. */
  get tells(): boolean {
    return telling.has(this.place.key);
  }

  /** Lets the queue tell its events to a stream, from now on. */
  async tell(): Promise<void> {
    await this.make();
    if (this.tells) return;
    const most = await this.place.call('HGET', this.place.of('meta'), 'opts.maxLenEvents');
    await this.place.dq('ALTER', 'EVENTS', this.place.of('events'), ...(most ? ['EVENTSLEN', String(most)] : []));
    telling.add(this.place.key);
  }

  /** Adds an event of BullMQ's own to the stream, if somebody listens. */
  async publish(event: string, ...fields: Word[]): Promise<void> {
    if (this.tells) await this.place.call('XADD', this.place.of('events'), '*', ...OWN_ENTRY, 'event', event, ...fields);
  }

  /** Sets options of the queue, unless this process has done so already. */
  async alter(options: Record<string, string>): Promise<void> {
    const news = Object.entries(options).filter(([name, value]) => this.#set.get(name) !== value);
    if (!news.length) return;
    await this.make();
    await this.place.dq('ALTER', ...news.flatMap(([name, value]) => [name, ...value.split(' ')]));
    for (const [name, value] of news) this.#set.set(name, value);
  }

  /** Sets the options of the whole queue that a worker's options contain. */
  async work(options: Partial<WorkerOptions>): Promise<void> {
    this.#worker = options;
    const set: Record<string, string> = {};
    if (options.limiter) set.RATE = `${options.limiter.max} PER ${options.limiter.duration}`;
    const done: Keep = options.removeOnComplete;
    if (done !== undefined) Object.assign(set, { RETAIN: retain(done) }, counted('RETAINCOUNT', done));
    Object.assign(set, deadKept(options.removeOnFail));
    if (Object.keys(set).length) await this.alter(set);
  }
}

function retain(keep: Keep): string {
  if (keep === true || keep === 0) return '0';
  return typeof keep === 'object' && keep.age !== undefined ? String(Math.round(keep.age * 1000)) : EVER;
}

/** How many records a queue keeps, if `keep` says so. */
export function counted(option: 'RETAINCOUNT' | 'DEADCOUNT', keep: Keep): Record<string, string> {
  const count = typeof keep === 'number' ? keep : typeof keep === 'object' ? keep.count : undefined;
  return count === undefined || count === 0 ? {} : { [option]: String(count) };
}

/** How long and how many dead messages a queue keeps, if `keep` says so. */
export function deadKept(keep: Keep): Record<string, string> {
  const age = typeof keep === 'object' ? keep.age : undefined;
  return { ...counted('DEADCOUNT', keep), ...(age !== undefined && { DEADRETAIN: String(Math.max(1, Math.round(age * 1000))) }) };
}

/** Whether nothing of the job is kept. */
export function keepsNothing(keep: Keep): boolean {
  return keep === true || keep === 0 || (typeof keep === 'object' && keep.count === 0);
}
