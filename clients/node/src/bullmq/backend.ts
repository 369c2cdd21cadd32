/** dq as a backend of BullMQ. Each method is a command of dq, or a few; what they are is in the files beside this one. */

import type { DependenciesOpts, IQueueBackend, JobJson, JobProgress, JobState, JobType, JobsOptions, MinimalJob, MoveToDelayedOpts, MoveToWaitingChildrenOpts, ParentKeyOpts, RepeatableOptions, RetryJobOpts, RetryOptions } from 'bullmq';

import { maybeText } from '../replies.js';
import { Base } from './base.js';
import type { Node } from './flows.js';
import { stateOf } from './job.js';
import type { Keep } from './making.js';

export class DqQueueBackend extends Base implements IQueueBackend {
  forQueue(queueName: string, prefix?: string): DqQueueBackend {
    return new DqQueueBackend(this.place.sibling(prefix, queueName), this.opts, this.useOfSibling);
  }

  // ---- adding

  addJob(job: JobJson, jobId: string, parentKeyOpts?: ParentKeyOpts): Promise<string> {
    return this.adding.one({ job, jobId, parentKeyOpts });
  }

  addJobs(entries: { job: JobJson; jobId: string; parentKeyOpts?: ParentKeyOpts }[]): Promise<string[]> {
    return this.adding.many(entries);
  }

  addFlow(entries: Node[]): Promise<[Error | null, string | number][]> {
    return this.flows.add(entries);
  }

  addJobScheduler(id: string, next: number, data: string, template: JobsOptions, repeat: RepeatableOptions, opts: JobsOptions): Promise<[string, number]> {
    return this.schedulers.add(id, next, data, template, repeat, opts);
  }

  // ---- working

  moveToActive(token: string, name?: string) {
    return this.working.take(token, name);
  }

  async moveToCompleted<T, R, N extends string>(job: MinimalJob<T, R, N>, value: R, keep: Keep, token: string, fetchNext: boolean) {
    return this.working.complete(job as unknown as MinimalJob, value, keep, token, fetchNext);
  }

  async moveToFailed<T, R, N extends string>(job: MinimalJob<T, R, N>, reason: string, keep: Keep, token: string, fetchNext: boolean, fields?: Record<string, unknown>) {
    return this.working.fail(job.id!, reason, keep, token, fetchNext, fields);
  }

  async moveToDelayed(id: string, _timestamp: number, delay: number, token?: string, { skipAttempt = false, fieldsToUpdate = {}, fetchNext = false }: MoveToDelayedOpts = {}) {
    return this.working.delay(id, delay, token, skipAttempt, fieldsToUpdate, fetchNext);
  }

  moveToWaitingChildren(id: string, token: string, { child }: MoveToWaitingChildrenOpts = {}): Promise<boolean> {
    return this.working.waitForChildren(id, token, child as { id?: string; queue: string } | undefined);
  }

  async moveJobFromActiveToWait(id: string, token?: string): Promise<number> {
    await this.working.giveBack(id, token);
    return Math.max(0, await this.settings.rateTtl());
  }

  async retryJob(id: string, _lifo: boolean, token?: string, { fieldsToUpdate = {} }: RetryJobOpts = {}): Promise<void> {
    await this.working.retry(id, token, fieldsToUpdate);
  }

  async retryFinishedJob<T, R, N extends string>(job: MinimalJob<T, R, N>, state: 'failed' | 'completed', opts: RetryOptions = {}): Promise<void> {
    await this.working.again(job.id!, state, opts);
  }

  async retryFinishedJobs(state: 'failed' | 'completed' = 'failed', count = 1000, before?: number): Promise<number> {
    return this.removing.again(state === 'failed' ? 'dead' : 'finished', count, before, (id) => this.working.again(id, state, {}));
  }

  promote(id: string): Promise<void> {
    return this.changing.promote(id);
  }

  promoteJobs(count?: number): Promise<number> {
    return this.changing.promoteAll(count);
  }

  /** Leases end by themselves, to the millisecond. This tells what came here so, and finds out whether somebody listens to events. */
  async moveStalledJobsToWait(): Promise<string[]> {
    await this.making.make();
    await this.making.refresh();
    return this.working.stalled();
  }

  async extendLock(id: string, token: string, duration: number): Promise<number> {
    return (await this.working.extend([id], [token], duration)).length ? 0 : 1;
  }

  extendLocks(ids: string[], tokens: string[], duration: number): Promise<string[]> {
    return this.working.extend(ids, tokens, duration);
  }

  waitForJob(seconds: number): Promise<{ member: string; score: number } | null> {
    return this.working.wait(seconds);
  }

  // ---- changing

  async updateData<T, R, N extends string>(job: MinimalJob<T, R, N>, data: T): Promise<void> {
    await this.changing.data(job.id!, data);
  }

  updateProgress(id: string, progress: JobProgress): Promise<void> {
    return this.changing.progress(id, progress);
  }

  addLog(id: string, row: string, keepLogs?: number): Promise<number> {
    return this.changing.addLog(id, row, keepLogs);
  }

  clearLogs(id: string, keepLogs?: number): Promise<void> {
    return this.changing.clearLogs(id, keepLogs);
  }

  getJobLogs(id: string, start: number, end: number, asc: boolean): Promise<{ logs: string[]; count: number }> {
    return this.changing.logs(id, start, end, asc);
  }

  changeDelay(id: string, delay: number): Promise<void> {
    return this.changing.changeDelay(id, delay);
  }

  changePriority(id: string, priority = 0, lifo = false): Promise<void> {
    return this.changing.changePriority(id, priority, lifo);
  }

  // ---- removing

  remove(id: string, removeChildren: boolean): Promise<number> {
    return this.removing.remove(id, removeChildren);
  }

  removeUnprocessedChildren(id: string): Promise<void> {
    return this.removing.children(id);
  }

  removeChildDependency(id: string, parentKey: string): Promise<boolean> {
    return this.changing.leaveParent(id, parentKey);
  }

  drain(delayed: boolean): Promise<void> {
    return this.removing.drain(delayed);
  }

  cleanJobsByState(state: string, timestamp: number, limit = 0): Promise<string[]> {
    return this.removing.clean(state, timestamp, limit);
  }

  obliterate({ force }: { force: boolean; count: number }): Promise<number> {
    return this.removing.obliterate(force);
  }

  /** A message is always in one state, so there are no orphans. */
  async removeOrphanedJobs(): Promise<number> {
    return 0;
  }

  async removeDeduplicationKey(name: string, id: string): Promise<number> {
    return (await this.getDeduplicationJobId(name)) === id ? this.deleteDeduplicationKey(name) : 0;
  }

  async deleteDeduplicationKey(name: string): Promise<number> {
    return Number(await this.place.call('DEL', this.place.of(`de:${name}`)));
  }

  // ---- schedulers

  updateJobSchedulerNextMillis(id: string, next: number, _data: string, opts: JobsOptions, producer?: string): Promise<string | null> {
    return this.schedulers.go(id, next, opts, producer);
  }

  removeJobScheduler(id: string): Promise<number> {
    return this.schedulers.remove(id);
  }

  async getJobScheduler(id: string): Promise<[unknown, string | null]> {
    const found = await this.schedulers.get(id);
    return found ? [Object.entries(await this.getJobSchedulerData(id)).flat(), String(found.next)] : [null, null];
  }

  async isJobScheduler(id: string): Promise<boolean> {
    return (await this.schedulers.get(id)) !== null;
  }

  async getJobSchedulerData(id: string): Promise<Record<string, string>> {
    return (await this.schedulers.get(id))?.fields ?? {};
  }

  getJobSchedulersRange(start: number, end: number, asc: boolean): Promise<string[]> {
    return this.schedulers.range(start, end, asc);
  }

  getJobSchedulersCount(): Promise<number> {
    return this.schedulers.count();
  }

  // ---- looking

  getState(id: string): Promise<JobState | 'unknown'> {
    return this.looking.state(id);
  }

  isFinished(id: string, returnValue = false): Promise<number | [number, string]> {
    return this.looking.finished(id, returnValue);
  }

  isMaxed(): Promise<boolean> {
    return this.settings.isMaxed();
  }

  isJobInState(state: string, id: string): Promise<boolean> {
    return this.looking.isIn(state, id);
  }

  getJobData(id: string): Promise<JobJson | undefined> {
    return this.looking.job(id);
  }

  async getDeduplicationJobId(name: string): Promise<string | null> {
    const key = this.place.of(`de:${name}`);
    const id = maybeText(await this.place.call('GET', key));
    if (id === null || Number(await this.place.call('PTTL', key)) > 0) return id;
    const found = await this.looking.get(id);
    return found && !['completed', 'failed'].includes(stateOf(found)) ? id : null;
  }

  getRateLimitTtl(): Promise<number> {
    return this.settings.rateTtl();
  }

  getCounts(types: JobType[], delayedTimestamp?: number): Promise<number[]> {
    return this.looking.counts(types, delayedTimestamp);
  }

  getCountsPerPriority(priorities: number[]): Promise<number[]> {
    return this.looking.countsPerPriority(priorities);
  }

  async getRanges(types: JobType[], start = 0, end = -1, asc = false): Promise<[string][]> {
    const found: string[][] = [];
    for (const type of types) {
      const ids = await this.looking.range(type, start, end, asc);
      // BullMQ reverses the states that are lists in its own store.
      found.push(asc && (type === 'active' || type === 'wait' || type === 'waiting') ? ids.reverse() : ids);
    }
    return found as [string][];
  }

  getDependencyCounts(id: string, types: string[]): Promise<number[]> {
    return this.flows.counts(id, types);
  }

  getDependencies(id: string, opts: DependenciesOpts) {
    return this.flows.dependencies(id, opts);
  }

  getProcessedChildrenValues(id: string): Promise<Record<string, string>> {
    return this.flows.values(id);
  }

  getIgnoredChildrenFailures(id: string): Promise<Record<string, string>> {
    return this.flows.ignored(id);
  }

  getMetrics(type: 'completed' | 'failed'): Promise<[string[], string[], number]> {
    return this.settings.metrics(type);
  }

  getClientList(): Promise<string[]> {
    return this.settings.clients();
  }

  async paginate(key: string, { start, end, fetchJobs }: { start: number; end: number; fetchJobs?: boolean }) {
    return this.flows.page(key, start, end, fetchJobs ? (id) => this.getJobData(id) : undefined);
  }

  // ---- settings

  setQueueMeta(values: Record<string, string | number>): Promise<number> {
    return this.settings.set(values);
  }

  async getQueueMetaField(field: string): Promise<string | null> {
    return (await this.settings.get([field]))[0] ?? null;
  }

  getQueueMetaFields(fields: string[]): Promise<(string | null)[]> {
    return this.settings.get(fields);
  }

  getQueueMeta(): Promise<Record<string, string>> {
    return this.settings.all();
  }

  removeQueueMetaFields(fields: string[]): Promise<number> {
    return this.settings.remove(fields);
  }

  hasQueueMetaField(field: string): Promise<boolean> {
    return this.settings.has(field);
  }

  pause(pause: boolean): Promise<void> {
    return this.settings.pause(pause);
  }

  setRateLimit(ms: number): Promise<void> {
    return this.settings.rateLimit(ms);
  }

  removeRateLimitKey(): Promise<number> {
    return this.settings.freeRate();
  }

  async removeDeprecatedPriorityKey(): Promise<number> {
    return 0;
  }

  trimEvents(maxLength: number): Promise<number> {
    return this.settings.trimEvents(maxLength);
  }

  publishEvent(fields: Record<string, string | number>, maxEvents: number): Promise<string> {
    return this.events.publish(fields, maxEvents);
  }

  readEvents(id: string, blockTimeout: number) {
    return this.events.read(id, blockTimeout);
  }
}
