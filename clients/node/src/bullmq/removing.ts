/** Removes jobs, and runs many again. */

import { list, shaped, text } from '../replies.js';
import type { Word } from '../words.js';
import { OF_SCHEDULER, failure, lacking } from './failure.js';
import { PRIORITIZED, type Seen, exactly, seen, stateOf, stored } from './job.js';
import { lateKey, resultsKey } from './late.js';
import type { Making } from './making.js';
import { type Place, callAt } from './place.js';

/**
 * The field of each state that holds the time that orders it, so that one message of it is found without going over the
 * others.
 */
const ORDERED: Record<string, keyof Seen> = { delayed: 'dueAt', retry: 'dueAt', finished: 'finishedAt', dead: 'finishedAt', cancelled: 'finishedAt' };

/** The states of dq that `clean` goes over. */
const CLEANED: Record<string, readonly string[]> = {
  completed: ['finished'],
  failed: ['dead'],
  delayed: ['delayed', 'retry'],
  wait: ['ready', 'blocked'],
  paused: ['ready', 'blocked'],
  prioritized: ['ready', 'blocked'],
  active: ['running'],
};

/** Leaves out an error that says what has become of one job. */
function unlessOfJob(error: unknown): void {
  if (typeof (error as { code?: unknown }).code !== 'number') throw error;
}

export class Removing {
  constructor(
    readonly place: Place,
    readonly making: Making,
    readonly ofScheduler: (found: Seen) => Promise<boolean>,
    /** Takes the limits away that were set for the whole queue. */
    readonly noLimits: () => Promise<unknown>,
  ) {}

  /** Removes a job, and its children that have not ended. Returns 0 if one of them runs. */
  async remove(id: string, children: boolean): Promise<number> {
    const found = seen(await this.place.dq('GET', id));
    if (!found) return 1;
    if (await this.ofScheduler(found)) throw failure(OF_SCHEDULER, id, 'removeJob');
    const family = children ? await this.#family(this.place.key, id) : [];
    if (found.state === 'running' || family.some(({ state }) => state === 'running')) return 0;
    for (const child of family) await this.#forget(child.key, seen(await callAt(this.place.server, child.key, 'DQ.GET', child.key, child.id)));
    // Without its children the parent may be ready.
    await this.#forget(this.place.key, family.length ? seen(await this.place.dq('GET', id)) : found);
    await this.making.publish('removed', 'jobId', id, 'prev', stateOf(found));
    return 1;
  }

  /** Removes the children of a job that have neither ended nor begun. */
  async children(id: string): Promise<void> {
    for (const child of await this.#family(this.place.key, id)) {
      if (child.state === 'running' || child.state === 'finished' || child.state === 'dead') continue;
      await this.#forget(child.key, seen(await callAt(this.place.server, child.key, 'DQ.GET', child.key, child.id)));
    }
  }

  /** The children of a job, and theirs. */
  async #family(key: string, id: string): Promise<{ key: string; id: string; state: string }[]> {
    const found: { key: string; id: string; state: string }[] = [];
    for (let cursor = ''; cursor !== '0'; ) {
      const page = list(await callAt(this.place.server, key, 'DQ.CHILDREN', key, id, 'COUNT', '1000', ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      for (const one of list(page[1])) {
        const child = shaped<{ key: string; id: string; state: string }>(one);
        found.push(child, ...(await this.#family(child.key, child.id)));
      }
    }
    return found;
  }

  /** Removes a message of this queue, with its record and the rows of its log. */
  async forget(found: Seen): Promise<void> {
    await this.#forget(this.place.key, found);
    await this.making.publish('removed', 'jobId', found.id, 'prev', stateOf(found));
  }

  async #forget(key: string, found: Seen | null): Promise<void> {
    if (!found) return;
    const by = ORDERED[found.state];
    const at = by ? Number(found[by]) : undefined;
    const window = at === undefined ? [] : ['SINCE', String(at), 'UNTIL', String(at + 1)];
    const words: Word[] = ['DQ.FIND', key, found.state, 'ID', exactly(found.id), ...window, 'DO', 'PURGE'];
    for (let cursor = ''; cursor !== '0'; ) {
      const [next, done] = list(await callAt(this.place.server, key, ...words, ...(cursor ? ['CURSOR', cursor] : [])));
      if (Number(done) > 0) break;
      cursor = text(next);
    }
    const { deduplicationId } = stored(found.payload);
    const also = [`${key}:${found.id}:logs`, lateKey(`${key}:${found.id}`), resultsKey(`${key}:${found.id}`), ...(deduplicationId ? await this.#names(key, deduplicationId, found.id) : [])];
    await callAt(this.place.server, key, 'DEL', ...also);
  }

  /** The key that holds the job of a deduplication id, if that is this job. */
  async #names(key: string, name: string, id: string): Promise<string[]> {
    const of = `${key}:de:${name}`;
    const stands = await callAt(this.place.server, key, 'GET', of);
    return stands !== null && text(stands) === id ? [of] : [];
  }

  /** Removes waiting jobs, and delayed ones if `delayed` is set. Jobs that a scheduler has planned stay. */
  async drain(delayed: boolean): Promise<void> {
    const planned = await this.#planned();
    // A parent may be ready when its last child has gone.
    while ((await this.#purge('ready', planned)) + (await this.#purge('blocked', planned)) > 0);
    if (delayed) for (const state of ['delayed', 'retry']) await this.#purge(state, planned);
  }

  /** Removes the messages of a state but some. Returns how many it has removed. */
  async #purge(state: string, but: ReadonlySet<string>): Promise<number> {
    if (!but.size) return Number(await this.place.dq('PURGE', state));
    const found = (await this.#page(state, [])).filter(({ id }) => !but.has(text(id)));
    for (const one of found) await this.#forget(this.place.key, one);
    return found.length;
  }

  async #planned(): Promise<Set<string>> {
    const planned = list(await this.place.call('HVALS', this.place.of('repeat')));
    return new Set(planned.map((one) => (JSON.parse(text(one)) as { job: string }).job));
  }

  async #page(state: string, words: readonly Word[], most = Infinity): Promise<Seen[]> {
    const found: Seen[] = [];
    for (let cursor = ''; cursor !== '0' && found.length < most; ) {
      const page = list(await this.place.dq('FIND', state, ...words, ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      found.push(...list(page[1]).map((one) => shaped<Seen>(one)));
    }
    return found.slice(0, most);
  }

  /** Removes up to `limit` jobs of a state that are older than a time. Returns their ids. */
  async clean(state: string, before: number, limit: number): Promise<string[]> {
    const removed: string[] = [];
    // A parent may be ready when its last child has gone.
    for (let more = true; more && !(limit && removed.length >= limit); ) {
      const found = await this.#clean(state, before, limit ? limit - removed.length : 0);
      removed.push(...found);
      more = found.length > 0 && state === 'wait';
    }
    await this.making.publish('cleaned', 'count', String(removed.length));
    return removed;
  }

  async #clean(state: string, before: number, limit: number): Promise<string[]> {
    const states = CLEANED[state];
    if (!states) throw lacking(`jobs in the state ${state} cannot be cleaned`);
    const planned = await this.#planned();
    const removed: string[] = [];
    for (const one of states) {
      const ended = one === 'finished' || one === 'dead';
      // A job that has not ended counts by its own time, which is in its payload.
      const found = await this.#page(one, ended ? ['UNTIL', String(before + 1)] : [], ended && limit ? limit - removed.length : Infinity);
      for (const job of found) {
        if (limit && removed.length >= limit) break;
        if (!ended && (stored(job.payload).timestamp > before || planned.has(job.id))) continue;
        if (one === 'ready' && (job.group === PRIORITIZED) !== (state === 'prioritized')) continue;
        if (one === 'running' && (await this.#holds(job))) continue;
        await this.#forget(this.place.key, job);
        removed.push(job.id);
      }
    }
    return removed;
  }

  /** Whether a worker has the job now. */
  async #holds({ id }: Seen): Promise<boolean> {
    return seen(await this.place.dq('GET', id))?.state === 'running';
  }

  /** Removes everything. The queue itself stays, with its options, for the processes that know it. */
  async obliterate(force: boolean): Promise<number> {
    await this.making.make();
    const info = await this.making.refresh();
    if (!(await this.place.call('HEXISTS', this.place.of('meta'), 'paused'))) throw new Error('Cannot obliterate non-paused queue');
    if (Number(info.running) > 0 && !force) throw new Error('Cannot obliterate queue with active jobs');
    await this.place.dq('PURGE');
    await this.place.dq('RESUME');
    const keys = ['meta', 'repeat', 'limiter', 'events'].map((what) => this.place.of(what)).concat(await this.#beside());
    await this.noLimits();
    for (let at = 0; at < keys.length; at += 1000) await this.place.call('DEL', ...keys.slice(at, at + 1000));
    return 0;
  }

  /** The keys of logs and deduplication ids. Nobody else knows them, so this goes over the keys of the server. */
  async #beside(): Promise<string[]> {
    const keys: string[] = [];
    for (let cursor = ''; cursor !== '0'; ) {
      const page = list(await this.place.call('SCAN', cursor || '0', 'MATCH', `${exactly(this.place.key)}:*`, 'COUNT', '1000'));
      cursor = text(page[0]);
      keys.push(...list(page[1]).map(text).filter((key) => /:(de:.*|logs|children|results)$/.test(key.slice(this.place.key.length))));
    }
    return keys;
  }

  /** Runs up to `count` jobs again that have ended before a time, many at once. Returns 1 if there are more. */
  async again(state: 'finished' | 'dead', count: number, before: number | undefined, one: (id: string) => Promise<void>): Promise<number> {
    const words = ['IDS', 'COUNT', '1000', ...(before === undefined ? [] : ['UNTIL', String(before + 1)])];
    let done = 0;
    for (let cursor = ''; cursor !== '0' && done < count; ) {
      const page = list(await this.place.dq('FIND', state, ...words, ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      const ids = list(page[1]).slice(0, count - done).map(text);
      // Somebody else may have removed one, or have it run already.
      await Promise.all(ids.map((id) => one(id).catch(unlessOfJob)));
      done += ids.length;
    }
    return done === count ? 1 : 0;
  }
}
