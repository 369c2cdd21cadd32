/** Changes jobs that wait or run. */

import { list, text } from '../replies.js';
import type { Word } from '../words.js';
import { MISSING, NOT_IN_STATE, NO_PARENT, failure, lacking } from './failure.js';
import { type Gathered, type Seen, gathered, gathering, jobSeen, lineOf, seen, sentAnew, stateOf, stored, written } from './job.js';
import { lateKey } from './late.js';
import type { Leases } from './leases.js';
import type { Making } from './making.js';
import { MOST_STEPS, type Place, callAt } from './place.js';

/** How long the rows of a job's log are kept after the last one, in ms: a week. The server prunes jobs without telling. */
const LOG_KEPT = String(7 * 86_400_000);

/** Writes what a job has gathered, if there is room for it. */
function noteFor(id: string, command: string, more: Gathered): string {
  const note = gathering(more);
  if (note === undefined) throw lacking(`the data and the progress of job ${id} are longer than a note, while it runs. ${command}`);
  return note;
}

export class Changing {
  constructor(
    readonly place: Place,
    readonly making: Making,
    readonly leases: Leases,
    /** Milliseconds, for which a lease is extended that a note is left with. */
    readonly lease: () => number,
  ) {}

  async #get(id: string, command: string): Promise<Seen> {
    const found = seen(await this.place.dq('GET', id));
    if (!found || found.state === 'cancelled') throw failure(MISSING, id, command);
    return found;
  }

  async data(id: string, data: unknown): Promise<void> {
    await this.#gather(id, 'updateData', { data: JSON.stringify(data ?? {}) });
  }

  async progress(id: string, progress: unknown): Promise<void> {
    await this.#gather(id, 'updateProgress', { progress });
    await this.making.publish('progress', 'jobId', id, 'data', JSON.stringify(progress ?? null));
  }

  /** Keeps something with a job: in its note while it runs, and otherwise in its payload. */
  async #gather(id: string, command: string, what: Partial<Gathered>): Promise<void> {
    const held = this.leases.held(id);
    if (held) {
      const more: Gathered = { ...held.gathered, ...what, v: held.gathered.v + 1 };
      const note = noteFor(id, command, more);
      // A processor may change two things at once.
      held.gathered = more;
      const touched = await this.place.dq('TOUCH', String(this.lease()), held.receipt, 'NOTE', note);
      if (Number(touched) === 1) {
        held.until = Math.max(held.until, Date.now() + this.lease() - 1000);
        return;
      }
      this.leases.drop(id);
    }
    const found = await this.#get(id, command);
    const first = stored(found.payload);
    const known = gathered(first, found.note);
    const more: Gathered = { ...known, ...what, v: known.v + 1 };
    if (found.state === 'running') {
      const touched = await this.place.dq('TOUCH', String(this.lease()), String(found.receipt), 'NOTE', noteFor(id, command, more));
      if (Number(touched) === 1) return;
    } else if (found.state !== 'finished' && found.state !== 'dead') {
      const { data, ...rest } = more;
      const payload = written({ ...first, gathered: rest }, data ?? JSON.stringify(first.data ?? {}));
      if (Number(await this.place.dq('UPDATE', id, payload)) === 1) return;
    }
    throw lacking(`job ${id} has ended, and what has ended does not change. ${command}`);
  }

  async changeDelay(id: string, delay: number): Promise<void> {
    const found = await this.#get(id, 'changeDelay');
    if (stateOf(found) !== 'delayed') throw failure(NOT_IN_STATE, id, 'changeDelay', 'delayed');
    await this.#sendAnew(found, { delay });
  }

  async changePriority(id: string, priority: number, lifo: boolean): Promise<void> {
    const found = await this.#get(id, 'changePriority');
    const state = stateOf(found);
    if (state === 'active' || state === 'completed' || state === 'failed') return;
    await this.#sendAnew(found, { priority, lifo });
  }

  /** Sends a job anew under its id, with other options. The data that it has gathered is kept. */
  async #sendAnew(found: Seen, opts: { delay?: number; priority?: number; lifo?: boolean }): Promise<void> {
    const job = jobSeen(found);
    job.opts = { ...job.opts, ...opts };
    const group = lineOf(job.opts);
    if (group) await this.making.line(group);
    await this.place.call(...sentAnew(this.place.key, found, job, { first: opts.lifo, delay: opts.delay }));
  }

  /** Sends a child anew that waits, without its parent: so it has ended for that. */
  async leaveParent(id: string, parentKey: string): Promise<boolean> {
    const found = await this.#get(id, 'removeChildDependency');
    const first = stored(found.payload);
    if (!first.parent || first.parentKey !== parentKey) return false;
    const { queueKey: key, id: parentId = '' } = first.parent!;
    const parent = seen(await callAt(this.place.server, key, 'DQ.GET', key, parentId));
    if (!parent) throw failure(NO_PARENT, parentKey, 'removeChildDependency');
    if (found.state === 'running') throw lacking(`job ${id} runs, and stays the child of its parent. removeChildDependency`);
    const { parent: _, parentKey: __, ...job } = jobSeen(found);
    await this.place.call(...sentAnew(this.place.key, found, job));
    await this.place.call('SREM', lateKey(parentKey), `${this.place.key}\n${id}`);
    return true;
  }

  async promote(id: string): Promise<void> {
    const found = seen(await this.place.dq('GET', id));
    if (!found) throw failure(MISSING, id, 'promote', 'delayed');
    if (stateOf(found) !== 'delayed') throw failure(NOT_IN_STATE, id, 'promote', 'delayed');
    await this.place.dq('RESCHEDULE', id, 'DELAY', '0');
  }

  /** Makes up to `count` delayed jobs due. Returns 1 if there are more. */
  async promoteAll(count = 1000): Promise<number> {
    let done = 0;
    for (const state of ['delayed', 'retry']) {
      while (done < count) {
        const some = String(Math.min(MOST_STEPS, count - done));
        const ids = list(list(await this.place.dq('LIST', state, 'COUNT', some, 'IDS'))[1]).map(text);
        if (!ids.length) break;
        await this.place.together(ids.map((id) => ['DQ.RESCHEDULE', this.place.key, id, 'DELAY', '0']));
        done += ids.length;
      }
    }
    return done === count ? 1 : 0;
  }

  async addLog(id: string, row: string, keep = 0): Promise<number> {
    await this.#get(id, 'addLog');
    const key = this.place.of(`${id}:logs`);
    const commands: Word[][] = [['RPUSH', key, row]];
    if (keep) commands.push(['LTRIM', key, String(-keep), '-1']);
    commands.push(['LLEN', key], ['PEXPIRE', key, LOG_KEPT]);
    return Number((await this.place.together(commands, [key])).at(-2));
  }

  async clearLogs(id: string, keep = 0): Promise<void> {
    const key = this.place.of(`${id}:logs`);
    if (keep) await this.place.call('LTRIM', key, String(-keep), '-1');
    else await this.place.call('DEL', key);
  }

  async logs(id: string, start: number, end: number, asc: boolean): Promise<{ logs: string[]; count: number }> {
    const key = this.place.of(`${id}:logs`);
    const range = asc ? [start, end] : [-(end + 1), -(start + 1)];
    const [job, rows, count] = await this.place.together([['DQ.GET', this.place.key, id], ['LRANGE', key, ...range.map(String)], ['LLEN', key]], [this.place.key, key]);
    // The server prunes jobs without telling, and their rows stay behind.
    if (!job) return { logs: [], count: 0 };
    const logs = list(rows).map(text);
    return { logs: asc ? logs : logs.reverse(), count: Number(count) };
  }
}
