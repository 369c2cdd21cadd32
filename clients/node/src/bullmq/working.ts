/** The calls by which a worker settles its jobs. */

import type { JobJson, MinimalJob, WorkerOptions } from 'bullmq';

import { effectWords } from '../effects.js';
import type { Word } from '../words.js';
import { effectsOf } from './effects.js';
import { MISSING, NOT_IN_STATE, NO_LOCK, failure } from './failure.js';
import { MOST_AHEAD, type Taken } from './ahead.js';
import type { Fetching } from './fetching.js';
import { type Gathered, errorOf, exactly, gathered, jobOf, jobSeen, noteOf, payloadOf, seen, sendWords, stored, written } from './job.js';
import { type Lease, type Leases, consumer, consumerOf, isNumbered } from './leases.js';
import type { Late } from './late.js';
import { type Keep, type Making, counted, deadKept, keepsNothing } from './making.js';
import { persist } from './persist.js';
import type { Place } from './place.js';
import type { Waiting } from './waiting.js';

/** The next job as BullMQ wants it: the job, its id, how long a limit holds, when the next delayed one is due. */
export type Next = [JobJson | null, string, number, number];

const NONE: Next = [null, '', 0, 0];

/** Milliseconds before the end of a lease in which an ack is asked for whether it came in time. */
const MARGIN = 1000;

export class Working {
  /** Jobs that have come to this worker because another worker has lost them. */
  readonly #stalled = new Set<string>();
  #ready: Promise<void> | undefined;
  /** Whether the event `drained` was told. The last jobs of a burst may end together. */
  #drained = false;
  #closed = false;
  /** The consumer that takes, which is the name of the worker. */
  #worker = 'bullmq';
  #name: string | undefined;
  /** Whether more calls may follow in the same moment. Who takes jobs by hand names each token. */
  #isBurst = false;

  constructor(
    readonly place: Place,
    readonly making: Making,
    readonly leases: Leases,
    readonly fetching: Fetching,
    readonly waiting: Waiting,
    readonly late: Late,
    readonly options: Partial<WorkerOptions>,
    /** How many jobs may run here at once. */
    readonly concurrency: () => number,
  ) {
    fetching.lease = this.lease;
    this.#name = options.name;
  }

  get lease(): number {
    // A test may let a year go by while a job runs.
    return this.place.timed ? 10 ** 12 : (this.options.lockDuration ?? 30_000);
  }

  /** Whether commands are not repeated any more. */
  get closed(): boolean {
    return this.#closed || (this.place.bound?.over ?? false);
  }

  /** Sets the options of the queue that the worker's options contain. */
  #begin(): Promise<void> {
    return (this.#ready ??= this.#sure(() => this.making.make().then(() => this.making.work(this.options))).catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    }));
  }

  /** Repeats what may be done twice until it is done: BullMQ would take an error for that of the job, or take no job for a while. */
  #sure<T>(send: () => Promise<T>): Promise<T> {
    return persist(send, () => this.closed);
  }

  /** Tells an event. The job stays what it is if the event cannot be told. */
  async #tell(event: string, ...fields: Word[]): Promise<void> {
    if (this.making.tells) await this.#sure(() => this.making.publish(event, ...fields)).catch(() => {});
  }

  async take(token: string, name?: string): Promise<Next> {
    await this.#begin();
    this.#name = name ?? this.#name;
    this.#worker = consumerOf(token);
    this.#isBurst = isNumbered(token);
    this.fetching.consumer = this.#consumer();
    const taken = await this.#next(this.#free);
    return taken ? this.#given(taken, token) : NONE;
  }

  /** Takes the next message, and others ahead if `count` is more than one. */
  async #next(count = 1): Promise<Taken | undefined> {
    const { ahead } = this.fetching;
    return ahead.take() ?? (ahead.dry ? undefined : this.fetching.next(undefined, count));
  }

  /** How many messages to take at once: no more than the worker can begin now. */
  get #free(): number {
    if (!this.#isBurst) return 1;
    const free = this.concurrency() - this.leases.count - this.fetching.underway - this.fetching.ahead.size;
    return Math.max(1, Math.min(MOST_AHEAD, free));
  }

  /** The name under which leases are held. `connection` tells those of the connection that waits, whose tokens are others. */
  #consumer(connection = ''): string {
    return consumer(this.#worker, connection, this.#name);
  }

  /** Makes the job of a message that was taken. One that has run before has more to it than its payload. */
  async #given(taken: Taken, token: string): Promise<Next> {
    const first = stored(taken.payload);
    let more = gathered(first, null);
    let job: JobJson;
    if (taken.attempt > 1) {
      const all = seen(await this.#sure(() => this.place.dq('GET', taken.id)));
      if (all) more = gathered(first, all.note);
      job = all ? jobSeen(all) : jobOf(taken.id, first, more);
      if (all && all.timeouts > 0) {
        this.#stalled.add(taken.id);
        // The worker that gets the job fails it, and so the listeners of that worker get the event.
        if (!first.repeatJobKey && job.stalledCounter > (this.options.maxStalledCount ?? 1)) job.deferredFailure = 'job stalled more than allowable limit';
      }
    } else {
      job = jobOf(taken.id, first, more);
      job.attemptsStarted++;
    }
    job.delay = 0;
    job.processedOn = Date.now();
    if (this.#name) job.processedBy = this.#name;
    const lease = { receipt: taken.receipt, token, until: taken.since + this.lease, stored: first, gathered: more };
    this.leases.hold(taken.id, lease);
    this.#drained = false;
    return [job, taken.id, 0, 0];
  }

  /** The jobs that have come here since the last call because another worker has lost them. */
  stalled(): string[] {
    const ids = [...this.#stalled];
    this.#stalled.clear();
    return ids;
  }

  /** Waits up to so many seconds for jobs. They are kept for the next calls that take one. */
  async wait(seconds: number): Promise<{ member: string; score: number } | null> {
    const { ahead } = this.fetching;
    if (ahead.size) return { member: '', score: 0 };
    await this.#begin();
    const count = this.#free;
    const taken = await this.waiting.take(count, Math.max(1, Math.round(seconds * 1000)), this.lease, this.#consumer(':wait'));
    // A worker that stops asks for no job behind its wait.
    if (!taken.length) return this.waiting.stopped ? { member: '', score: Infinity } : null;
    ahead.keep(taken, count, taken.length);
    return { member: '', score: 0 };
  }

  /** Gives back the jobs that were taken for calls that do not come. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.fetching.ahead.giveBack();
  }

  async complete(job: MinimalJob, value: unknown, keep: Keep, token: string, next: boolean): Promise<{ result: Next | undefined; finishedOn: number }> {
    const id = job.id!;
    const lease = await this.leases.of(id, token, 'moveToFinished');
    await this.#sure(() => this.late.check(id));
    const result = JSON.stringify(value) ?? 'null';
    const applying = effectWords(effectsOf(job), '');
    const finishedOn = Date.now();
    if (keep !== undefined && keep !== false && job.parentKey) await this.#sure(() => this.late.keep(id, job.parentKey!, result));
    if (keep !== undefined) await this.#sure(() => this.making.alter(counted('RETAINCOUNT', keep)));
    // Behind the end of a lease another worker may have the job. Only then it must be known whether the ack came in time.
    if (next && !applying.length && !this.fetching.ahead.size && lease.until - MARGIN > finishedOn) {
      this.leases.drop(id);
      const taken = await this.fetching.next({ receipt: lease.receipt, result });
      await this.#completed(id, result, keep);
      return { result: await this.#after(taken, token), finishedOn };
    }
    await this.#settle(id, 'moveToFinished', ['ACK', lease.receipt, 'RESULT', result, ...applying]);
    await this.#completed(id, result, keep);
    return { result: next ? await this.#after(await this.#next(), token) : undefined, finishedOn };
  }

  /** A job that leaves no record cannot be asked for its result, so this method tells it. */
  async #completed(id: string, result: string, keep: Keep): Promise<void> {
    if (keepsNothing(keep ?? this.options.removeOnComplete)) await this.#tell('completed', 'jobId', id, 'returnvalue', result, 'prev', 'active');
  }

  async #after(taken: Taken | undefined, token: string): Promise<Next> {
    if (taken) return this.#given(taken, token);
    if (this.leases.count > 0 || this.#drained) return NONE;
    this.#drained = true;
    await this.#tell('drained');
    return NONE;
  }

  async fail(id: string, reason: string, keep: Keep, token: string, next: boolean, fields: Record<string, unknown> = {}): Promise<{ result: Next | undefined; finishedOn: number }> {
    const lease = await this.leases.of(id, token, 'moveToFinished');
    const finishedOn = Date.now();
    const kept = keep ?? this.options.removeOnFail;
    await this.#sure(() => this.making.alter(deadKept(keep)));
    const why = errorOf(reason);
    const nack: Word[] = ['NACK', lease.receipt, 'FATAL', 'ERROR', why, ...this.#note(lease, fields)];
    if (keepsNothing(kept)) {
      await this.#settle(id, 'moveToFinished', nack, [['DQ.FIND', this.place.key, 'dead', 'ID', exactly(id), 'REV', 'COUNT', '10', 'DO', 'PURGE']]);
      await this.#tell('failed', 'jobId', id, 'failedReason', why, 'prev', 'active');
    } else {
      await this.#settle(id, 'moveToFinished', nack);
    }
    return { result: next ? await this.#after(await this.#next(), token) : undefined, finishedOn };
  }

  /** Gives a job back for later. Without `skipAttempt` it has failed. */
  async delay(id: string, ms: number, token: string | undefined, skipAttempt: boolean, fields: Record<string, unknown>, next: boolean): Promise<Next | []> {
    const lease = await this.leases.of(id, token, 'moveToDelayed');
    if (skipAttempt) await this.#snooze(id, lease, ms, 'moveToDelayed');
    else await this.#settle(id, 'moveToDelayed', ['NACK', lease.receipt, 'DELAY', String(Math.ceil(ms)), 'ERROR', errorOf(fields.failedReason), ...this.#note(lease, { ...fields, delay: ms })]);
    this.leases.drop(id);
    if (!next || !token) return [];
    const found = await this.take(token);
    return found[0] ? found : [];
  }

  /** Gives a job back that has failed and is tried again at once. */
  async retry(id: string, token: string | undefined, fields: Record<string, unknown>): Promise<void> {
    const lease = await this.leases.of(id, token, 'retryJob');
    await this.#settle(id, 'retryJob', ['NACK', lease.receipt, 'DELAY', '0', 'ERROR', errorOf(fields.failedReason), ...this.#note(lease, fields)]);
    this.leases.drop(id);
  }

  /** Gives a job back to its old place. No attempt is counted. */
  async giveBack(id: string, token: string | undefined): Promise<void> {
    const lease = await this.leases.of(id, token, 'moveJobFromActiveToWait');
    await this.#snooze(id, lease, 0, 'moveJobFromActiveToWait');
    this.leases.drop(id);
  }

  /**
   * Gives a job back without counting an attempt. The data that it has gathered is in its payload then, so that its
   * next run needs no note.
   */
  async #snooze(id: string, lease: Lease, ms: number, command: string): Promise<void> {
    const more: Gathered = { ...lease.gathered, v: lease.gathered.v + 1, started: (lease.gathered.started ?? 0) + 1 };
    const { data, ...rest } = more;
    const payload = written({ ...lease.stored, gathered: rest }, data ?? JSON.stringify(lease.stored.data ?? {}));
    await this.#settle(id, command, ['NACK', lease.receipt, 'SILENT', 'DELAY', String(Math.ceil(ms))], [['DQ.UPDATE', this.place.key, id, payload]]);
  }

  /** The note that keeps the data of a run for the next one. */
  #note(lease: Lease, fields: Record<string, unknown>): Word[] {
    const more: Gathered = { ...lease.gathered, v: lease.gathered.v + 1 };
    if (typeof fields.stacktrace === 'string') more.stacktrace = fields.stacktrace;
    more.delay = fields.delay as number | undefined;
    if (typeof fields.tm === 'string') more.tm = fields.tm;
    return ['NOTE', noteOf(more)];
  }

  /** Settles a message by its receipt. After a lost reply it may be settled already. */
  async #settle(id: string, command: string, [verb, ...words]: Word[], behind: readonly Word[][] = []): Promise<void> {
    let lost = false;
    const send = behind.length ? () => this.place.together([[`DQ.${verb}`, this.place.key, ...words], ...behind]).then(([done]) => done) : () => this.place.dq(verb as string, ...words);
    const noticing = () =>
      send().catch((error: unknown) => {
        lost = true;
        throw error;
      });
    const done = await this.#sure(noticing);
    // With effects the reply is an array, or null.
    if ((done === null || done === 0) && !lost) await this.#lost(id, command);
    this.leases.drop(id);
  }

  /** Throws BullMQ's error if the job is not this worker's any more. */
  async #lost(id: string, command: string): Promise<never> {
    this.leases.drop(id);
    const found = seen(await this.place.dq('GET', id));
    if (!found) throw failure(MISSING, id, command);
    throw failure(found.state === 'running' ? NO_LOCK : NOT_IN_STATE, id, command);
  }

  async extend(ids: readonly string[], tokens: readonly string[], ms: number): Promise<string[]> {
    const failed: string[] = [];
    const touched: { id: string; receipt: string }[] = [];
    for (const [at, id] of ids.entries()) {
      try {
        const lease = await this.leases.of(id, tokens[at], 'extendLock');
        touched.push({ id, receipt: lease.receipt });
      } catch {
        failed.push(id);
      }
    }
    if (!touched.length) return failed;
    if (this.place.timed) ms = this.lease;
    const until = Date.now() + ms;
    const live = Number(await this.place.dq('TOUCH', String(ms), ...touched.map(({ receipt }) => receipt)));
    for (const { id, receipt } of touched) {
      const ok = live === touched.length || Number(await this.place.dq('TOUCH', String(ms), receipt)) === 1;
      const held = this.leases.held(id);
      if (!ok) failed.push(id);
      else if (held) held.until = until;
    }
    return failed;
  }

  /** Lets a job that runs wait for its children. Returns whether there are any to wait for. */
  async waitForChildren(id: string, token: string, child: { id?: string; queue: string } | undefined): Promise<boolean> {
    const lease = await this.leases.of(id, token, 'moveToWaitingChildren');
    const waits = await this.late.wait(id, lease.receipt, child);
    if (!waits) return false;
    this.leases.drop(id);
    await this.#tell('waiting-children', 'jobId', id, 'prev', 'active');
    return true;
  }

  /** Runs a job again that has ended, as a new message with its id. */
  async again(id: string, state: 'failed' | 'completed', reset: { resetAttemptsMade?: boolean; resetAttemptsStarted?: boolean }): Promise<void> {
    const found = seen(await this.place.dq('GET', id));
    if (!found) throw failure(MISSING, id, 'reprocessJob', state);
    const ended = state === 'failed' ? 'dead' : 'finished';
    if (found.state !== ended) throw failure(NOT_IN_STATE, id, 'reprocessJob', state);
    const json = jobSeen(found);
    if (reset.resetAttemptsMade) json.attemptsMade = 0;
    if (reset.resetAttemptsStarted) json.attemptsStarted = 0;
    const send: Word[] = [`${ended}?DQ.SEND`, this.place.key, payloadOf(json), 'ID', id, 'REPLACE', ...sendWords(json)];
    // Somebody else may have it run again in the same moment.
    if ((await this.place.together([send]))[0] === null) throw failure(NOT_IN_STATE, id, 'reprocessJob', state);
    await this.making.publish('waiting', 'jobId', id, 'prev', state);
  }
}
