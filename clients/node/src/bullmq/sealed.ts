/** The backend that hands BullMQ the data and the return values of jobs in clear, and keeps them as a coding writes them. */

import type { DependenciesOpts, JobJson, JobsOptions, MinimalJob, MoveToDelayedOpts, ParentKeyOpts, QueueBaseOptions, RepeatableOptions } from 'bullmq';

import type { Coding } from '../middleware.js';
import { DqQueueBackend } from './backend.js';
import type { Use } from './base.js';
import { Envelope } from './envelope.js';
import type { Node } from './flows.js';
import type { Keep } from './making.js';
import { Numbers } from './numbers.js';
import type { Place } from './place.js';
import type { Next } from './working.js';

/** The name under which return values are authenticated. The name of their job stands for the queue. */
const RETURNED = 'returnvalue';

/** The scheduler of a job, or its deduplication id, whose data another job may get. Ids of jobs have no colon. */
function bound(job: Partial<JobJson>, id: string): string {
  if (job.repeatJobKey !== undefined) return ofScheduler(job.repeatJobKey);
  return job.deduplicationId === undefined ? id : `de:${job.deduplicationId}`;
}

const ofScheduler = (id: string) => `repeat:${id}`;

export class SealedBackend extends DqQueueBackend {
  readonly #envelope: Envelope;

  constructor(place: Place, opts: QueueBaseOptions<unknown>, use: Use, readonly coding: Coding) {
    super(place, opts, use);
    this.#envelope = new Envelope(coding);
  }

  override forQueue(queueName: string, prefix?: string): SealedBackend {
    return new SealedBackend(this.place.sibling(prefix, queueName), this.opts, this.useOfSibling, this.coding);
  }

  // ---- written

  async #written(place: Place, job: JobJson, id: string): Promise<JobJson> {
    return { ...job, data: await this.#envelope.seal(place.key, bound(job, id), job.data || '{}') };
  }

  override async addJob(job: JobJson, jobId: string, parentKeyOpts?: ParentKeyOpts): Promise<string> {
    const id = jobId || (await this.adding.numbers.take(1))[0]!;
    return super.addJob(await this.#written(this.place, job, id), id, parentKeyOpts);
  }

  override async addJobs(entries: { job: JobJson; jobId: string; parentKeyOpts?: ParentKeyOpts }[]): Promise<string[]> {
    const fresh = await this.adding.numbers.take(entries.filter(({ jobId }) => !jobId).length);
    const written = entries.map(async (entry) => {
      const jobId = entry.jobId || fresh.shift()!;
      return { ...entry, jobId, job: await this.#written(this.place, entry.job, jobId) };
    });
    return super.addJobs(await Promise.all(written));
  }

  override async addFlow(entries: Node[]): Promise<[Error | null, string | number][]> {
    const written = entries.map(async (entry) => {
      const place = this.place.sibling(entry.prefix, entry.queueName);
      const jobId = entry.jobId || (await new Numbers(place).take(1))[0]!;
      return { ...entry, jobId, jobData: await this.#written(place, entry.jobData, jobId) };
    });
    return super.addFlow(await Promise.all(written));
  }

  override async addJobScheduler(id: string, next: number, data: string, template: JobsOptions, repeat: RepeatableOptions, opts: JobsOptions): Promise<[string, number]> {
    return super.addJobScheduler(id, next, await this.#envelope.seal(this.qualifiedName, ofScheduler(id), data || '{}'), template, repeat, opts);
  }

  override async updateData<T, R, N extends string>(job: MinimalJob<T, R, N>, data: T): Promise<void> {
    const text = JSON.stringify(data ?? {});
    const sealed = await this.#envelope.seal(this.qualifiedName, bound(job as unknown as Partial<JobJson>, job.id!), text);
    return super.updateData(job, JSON.parse(sealed) as T);
  }

  override async moveToCompleted<T, R, N extends string>(job: MinimalJob<T, R, N>, value: R, keep: Keep, token: string, fetchNext: boolean) {
    const sealed = await this.#envelope.seal(this.toKey(job.id!), RETURNED, JSON.stringify(value) ?? 'null');
    const done = await super.moveToCompleted(job, JSON.parse(sealed) as R, keep, token, fetchNext);
    return { ...done, result: await this.#next(done.result) };
  }

  // ---- read

  /** A worker fails a job whose data it cannot read. Who only looks at it sees them as they are. */
  async #opened(job: JobJson, id: string): Promise<JobJson> {
    const opened = { ...job };
    try {
      opened.data = await this.#envelope.open(this.qualifiedName, bound(job, id), job.data);
    } catch (error) {
      opened.deferredFailure ??= (error as Error).message;
    }
    opened.returnvalue = await this.#returned(this.toKey(id), job.returnvalue);
    return opened;
  }

  /** The return value of the job of this name. A job that has not ended has none. */
  async #returned(name: string, value: string): Promise<string> {
    return value === 'null' ? value : this.#envelope.seen(name, RETURNED, value);
  }

  async #returnedOf(name: string, value: unknown): Promise<unknown> {
    return JSON.parse(await this.#returned(name, JSON.stringify(value) ?? 'null'));
  }

  async #next<T extends Next | [] | undefined>(next: T): Promise<T> {
    const [job, id = '', ...rest] = next ?? [];
    return job ? ([await this.#opened(job, id), id, ...rest] as T) : next;
  }

  override async moveToActive(token: string, name?: string): Promise<Next> {
    return this.#next(await super.moveToActive(token, name));
  }

  override async moveToFailed<T, R, N extends string>(job: MinimalJob<T, R, N>, reason: string, keep: Keep, token: string, fetchNext: boolean, fields?: Record<string, unknown>) {
    const done = await super.moveToFailed(job, reason, keep, token, fetchNext, fields);
    return { ...done, result: await this.#next(done.result) };
  }

  override async moveToDelayed(id: string, timestamp: number, delay: number, token?: string, opts?: MoveToDelayedOpts): Promise<Next | []> {
    return this.#next(await super.moveToDelayed(id, timestamp, delay, token, opts));
  }

  override async getJobData(id: string): Promise<JobJson | undefined> {
    const job = await super.getJobData(id);
    return job && this.#opened(job, id);
  }

  override async isFinished(id: string, returnValue = false): Promise<number | [number, string]> {
    const found = await super.isFinished(id, returnValue);
    return Array.isArray(found) && found[0] === 1 ? [1, await this.#returned(this.toKey(id), found[1])] : found;
  }

  override async getProcessedChildrenValues(id: string): Promise<Record<string, string>> {
    const values = Object.entries(await super.getProcessedChildrenValues(id));
    return Object.fromEntries(await Promise.all(values.map(async ([name, value]) => [name, await this.#returned(name, value)])));
  }

  override async getDependencies(id: string, opts: DependenciesOpts) {
    const found = await super.getDependencies(id, opts);
    const values = Object.entries(found.processed ?? {}).map(async ([name, value]) => [name, await this.#returnedOf(name, value)]);
    return { ...found, ...(found.processed && { processed: Object.fromEntries(await Promise.all(values)) }) };
  }

  override async paginate(key: string, range: { start: number; end: number; fetchJobs?: boolean }) {
    const page = await super.paginate(key, range);
    const items = page.items.map(async (item) => ('v' in item ? { ...item, v: await this.#returnedOf(item.id, item.v) } : item));
    return { ...page, items: await Promise.all(items) };
  }

  override async getJobSchedulerData(id: string): Promise<Record<string, string>> {
    const { data, ...fields } = await super.getJobSchedulerData(id);
    if (data === undefined) return fields;
    const clear = await this.#envelope.seen(this.qualifiedName, ofScheduler(id), data);
    return clear === '{}' ? fields : { ...fields, data: clear };
  }

  override async readEvents(id: string, blockTimeout: number) {
    const streams = await super.readEvents(id, blockTimeout);
    for (const [, entries] of streams ?? []) {
      for (const [, fields] of entries) {
        const at = fields.indexOf(RETURNED);
        if (fields[1] !== 'completed' || at < 0) continue;
        const job = fields[fields.indexOf('jobId') + 1]!;
        fields[at + 1] = await this.#returned(this.toKey(job), fields[at + 1]!);
      }
    }
    return streams;
  }
}
