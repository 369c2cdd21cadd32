/** Jobs that wait for others: parents and their children. */

import type { DependenciesOpts, JobJson, ParentKeyOpts } from 'bullmq';

import { list, shaped, text, texts } from '../replies.js';
import type { Word } from '../words.js';
import { Adding } from './adding.js';
import { adopt } from './adopting.js';
import { lacking } from './failure.js';
import { dueWords, payloadOf, seen, sendWords } from './job.js';
import { joining, lateKey, resultsKey } from './late.js';
import { Making } from './making.js';
import { Numbers } from './numbers.js';
import { type Place, callAt } from './place.js';

export interface Node {
  jobData: JobJson;
  jobId: string;
  parentKeyOpts: ParentKeyOpts;
  prefix: string;
  queueName: string;
}

interface Child {
  key: string;
  id: string;
  state: string;
  result: string | null;
  error: string | null;
}

type Kind = 'processed' | 'unprocessed' | 'failed' | 'ignored';

export class Flows {
  /** The queues that are known to exist. */
  readonly #makings = new Map<string, Making>();

  constructor(readonly place: Place) {}

  async #made(place: Place): Promise<Making> {
    const making = this.#makings.get(place.key) ?? new Making(place);
    this.#makings.set(place.key, making);
    await making.make();
    return making;
  }

  /** Adds parents with their children, all or none. Replies for each with its id. */
  async add(nodes: readonly Node[]): Promise<[Error | null, string | number][]> {
    const counts = new Map<string, number>();
    for (const { parentKeyOpts } of nodes) if (parentKeyOpts.parentKey) counts.set(parentKeyOpts.parentKey, (counts.get(parentKeyOpts.parentKey) ?? 0) + 1);
    const own = new Set(nodes.map(({ prefix, queueName, jobId }) => this.place.sibling(prefix, queueName).of(jobId)));
    const commands: Word[][] = [];
    const keys = new Set<string>();
    const places = new Map<string, Place>();
    const sent: { at: number; place: Place; id: string; job: JobJson }[] = [];
    const results: [Error | null, string | number][] = [];
    for (const { jobData, jobId, parentKeyOpts, prefix, queueName } of nodes) {
      const place = this.place.sibling(prefix, queueName);
      const making = await this.#made(place);
      const id = jobId || (await new Numbers(place).take(1))[0]!;
      results.push([null, id]);
      places.set(place.key, place);
      const children = parentKeyOpts.addToWaitingChildren ? (counts.get(place.of(id)) ?? 0) : 0;
      if (jobData.opts.deduplication) {
        results[results.length - 1] = [null, await new Adding(place, making, new Numbers(place)).one({ job: jobData, jobId: id, parentKeyOpts })];
        continue;
      }
      const { parentKey } = parentKeyOpts;
      if (parentKey && !own.has(parentKey)) {
        try {
          const joined = await joining(place, id, jobData, parentKey);
          commands.push(...joined.commands);
          for (const key of joined.keys) keys.add(key);
        } catch (error) {
          // BullMQ makes an error of a code, and the other flows are added.
          if (!(error instanceof Error && 'code' in error && typeof error.code === 'number')) throw error;
          results[results.length - 1] = [null, error.code];
          continue;
        }
      }
      sent.push({ at: commands.length, place, id, job: jobData });
      commands.push([
        jobData.opts.jobId ? '?DQ.SEND' : 'DQ.SEND', place.key, payloadOf(jobData), 'ID', id, ...sendWords(jobData), ...dueWords(jobData),
        ...(children ? ['CHILDREN', String(children)] : []),
      ]);
    }
    try {
      const replies = (await [...places.values()][0]?.together(commands, [...places.keys(), ...keys])) ?? [];
      // An existing parent keeps the children that it has.
      const there = new Set(sent.filter(({ at }) => replies[at] === null).map(({ place, id }) => place.of(id)));
      for (const { place, id, job } of sent) if (there.has(place.of(id)) && job.parentKey && !there.has(job.parentKey)) await adopt(place, id, job);
      return results;
    } catch (error) {
      return results.map(() => [error as Error, 0]);
    }
  }

  async children(id: string): Promise<Child[]> {
    const found: Child[] = [];
    for (let cursor = ''; cursor !== '0'; ) {
      const page = list(await this.place.dq('CHILDREN', id, 'COUNT', '1000', ...(cursor ? ['CURSOR', cursor] : [])));
      cursor = text(page[0]);
      found.push(...list(page[1]).map((one) => shaped<Child>(one)));
    }
    const known = new Set(found.map(({ key, id: of }) => `${key}\n${of}`));
    for (const one of list(await this.place.call('SMEMBERS', lateKey(this.place.of(id)))).map(text)) {
      if (known.has(one)) continue;
      const [key = '', of = ''] = one.split('\n');
      const child = seen(await callAt(this.place.server, key, 'DQ.GET', key, of));
      if (child) found.push({ key, id: of, state: child.state, result: child.result, error: child.error });
    }
    return found;
  }

  /** The children of a kind, by the names that BullMQ has for them. */
  async #of(id: string): Promise<Record<Kind, [string, Child][]>> {
    const kinds: Record<Kind, [string, Child][]> = { processed: [], unprocessed: [], failed: [], ignored: [] };
    for (const child of await this.children(id)) {
      const entry: [string, Child] = [`${child.key}:${child.id}`, child];
      if (child.state === 'finished') kinds.processed.push(entry);
      else if (child.state === 'dead') ((await this.#isIgnored(child)) ? kinds.ignored : kinds.failed).push(entry);
      else if (child.state !== 'cancelled') kinds.unprocessed.push(entry);
    }
    const known = new Set(kinds.processed.map(([name]) => name));
    for (const [both, result] of Object.entries(texts(await this.place.call('HGETALL', resultsKey(this.place.of(id)))))) {
      const [key = '', of = ''] = both.split('\n');
      if (!known.has(`${key}:${of}`)) kinds.processed.push([`${key}:${of}`, { key, id: of, state: 'finished', result, error: null }]);
    }
    return kinds;
  }

  async #isIgnored({ key, id }: Child): Promise<boolean> {
    const found = await callAt(this.place.server, key, 'DQ.GET', key, id);
    const { parent } = shaped<{ parent: { ondead: string } | null }>(found);
    return text(parent?.ondead ?? '').toUpperCase() === 'GO';
  }

  async values(id: string): Promise<Record<string, string>> {
    const { processed } = await this.#of(id);
    return Object.fromEntries(processed.map(([name, { result }]) => [name, result ?? 'null']));
  }

  async ignored(id: string): Promise<Record<string, string>> {
    const { ignored } = await this.#of(id);
    return Object.fromEntries(ignored.map(([name, { error }]) => [name, error ?? '']));
  }

  async counts(id: string, types: readonly string[]): Promise<number[]> {
    const kinds = await this.#of(id);
    return types.map((type) => kinds[type as Kind]?.length ?? 0);
  }

  /** The children behind a key of BullMQ: `...:dependencies` are those that have not ended, `...:processed` those that have. */
  async page(key: string, start: number, end: number, job?: (id: string) => Promise<JobJson | undefined>) {
    const [, id, what] = new RegExp(`^${this.place.key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}:(.*):(dependencies|processed)$`).exec(key) ?? [];
    if (id === undefined) throw lacking(`there is nothing like ${key}`);
    const kind = what === 'processed' ? 'processed' : 'unprocessed';
    const all = (await this.#of(id))[kind];
    const found = all.slice(Math.max(0, start), end < 0 ? undefined : end + 1);
    const items = found.map(([name, { result }]) => (kind === 'processed' ? { id: name, v: parsed(result) } : { id: name }));
    const jobs = job ? await Promise.all(found.map(([, child]) => job(child.id))) : undefined;
    return { cursor: '0', items, total: all.length, jobs: jobs?.filter((one) => one !== undefined) };
  }

  async dependencies(id: string, opts: DependenciesOpts) {
    const kinds = await this.#of(id);
    const all = !opts.processed && !opts.unprocessed && !opts.failed && !opts.ignored;
    const page = (kind: Kind) => {
      const { cursor = 0, count = all ? Infinity : 20 } = (opts[kind] as { cursor?: number; count?: number } | undefined) ?? {};
      const found = kinds[kind].slice(cursor, cursor + count);
      return { found, next: cursor + found.length < kinds[kind].length ? cursor + found.length : 0 };
    };
    const result: Record<string, unknown> = {};
    if (all || opts.processed) {
      const { found, next } = page('processed');
      result.processed = Object.fromEntries(found.map(([name, child]) => [name, parsed(child.result)]));
      if (!all) result.nextProcessedCursor = next;
    }
    if (all || opts.unprocessed) {
      const { found, next } = page('unprocessed');
      result.unprocessed = found.map(([name]) => name);
      if (!all) result.nextUnprocessedCursor = next;
    }
    if (all || opts.failed) {
      const { found, next } = page('failed');
      result.failed = found.map(([name]) => name);
      if (!all) result.nextFailedCursor = next;
    }
    if (all || opts.ignored) {
      const { found, next } = page('ignored');
      result.ignored = Object.fromEntries(found.map(([name, child]) => [name, child.error ?? '']));
      if (!all) result.nextIgnoredCursor = next;
    }
    return result as Awaited<ReturnType<import('bullmq').IQueueBackend['getDependencies']>>;
  }
}

function parsed(result: string | null): unknown {
  try {
    return JSON.parse(result ?? 'null');
  } catch {
    return result;
  }
}
