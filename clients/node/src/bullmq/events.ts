/** The events of a queue, read of the stream of its option EVENTS and told in the words of BullMQ. */

import { setTimeout as sleep } from 'node:timers/promises';

import { Connection } from '../connection.js';
import { isTransient, pauses } from '../errors.js';
import { list, pairs, text } from '../replies.js';
import type { Word } from '../words.js';
import { type Seen, jobSeen, seen, stored } from './job.js';
import { OWN_ENTRY, type Making } from './making.js';
import type { Place } from './place.js';
import { named } from './waiting.js';

/** An entry of a stream: its id, and fields and values in a row. */
export type Entry = [id: string, fields: string[]];

/** Entries that are read at once. */
const MOST = '200';

/** Events for which the message is looked at: the stream has no payloads, results and errors. */
const LOOKED_AT = new Set(['sent', 'acked', 'dead']);

export class Events {
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #closed = false;
  #cut = new AbortController();
  #name = '';
  /** The last entry that was read. */
  #read: string | undefined;
  /** Jobs that were released and are not ready yet. */
  readonly #released = new Set<string>();
  /** Jobs that a worker has given back, or lost. */
  readonly #back = new Set<string>();

  constructor(
    readonly place: Place,
    readonly making: Making,
    /** The reason why a job has failed, where the stream does not say it. */
    readonly why: (id: string) => Promise<string>,
  ) {}

  #connect(): Promise<Connection> {
    if (this.#connection?.usable) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #open(): Promise<Connection> {
    const connection = await Connection.to(await this.place.server.nodeOf(this.place.key), this.#cut.signal);
    if (this.#name) await named(connection, this.#name);
    if (this.#closed) connection.close();
    return (this.#connection = connection);
  }

  /** Connects under a name, so that the reader can be seen. */
  async open(name: string): Promise<void> {
    this.#name = name;
    await this.#connect();
  }

  async name(name: string): Promise<void> {
    this.#name = name;
    if (this.#connection?.usable) await named(this.#connection, name);
  }

  /** Reads the next events behind an id, waiting up to `ms` for one. */
  async read(id: string, ms: number): Promise<[string, Entry[]][] | null> {
    await this.making.tell();
    // The second read finds the entries that were added since the first one.
    let from = id === '$' ? (this.#read ??= await this.#last()) : id;
    const end = performance.now() + ms;
    for (const pause of pauses()) {
      if (this.#closed) return null;
      try {
        const left = Math.max(1, Math.round(end - performance.now()));
        const entries = await this.#next(from, left);
        const told = await this.#told(entries);
        from = this.#read = entries.at(-1)?.[0] ?? from;
        if (told.length) return [[this.place.of('events'), told]];
        if (performance.now() < end) continue;
        // The queue may have been deleted, and with it the option that tells events.
        await this.making.refresh();
        return null;
      } catch (error) {
        if (this.#closed) return null;
        if (!isTransient(error)) throw error;
        await sleep(pause);
      }
    }
    return null;
  }

  async #last(): Promise<string> {
    const [last] = list(await this.place.call('XREVRANGE', this.place.of('events'), '+', '-', 'COUNT', '1'));
    return last ? text(list(last)[0]) : '0-0';
  }

  async #next(from: string, ms: number): Promise<Entry[]> {
    const connection = await this.#connect();
    const key = this.place.of('events');
    const reply = await connection.call(['XREAD', 'COUNT', MOST, 'BLOCK', String(ms), 'STREAMS', key, from], ms);
    if (reply === null || reply === undefined) return [];
    // An array of pairs under RESP2, a map under RESP3.
    const [first] = Array.isArray(reply) && Array.isArray(reply[0]) ? [reply[0][1]] : pairs(reply).map(([, entries]) => entries);
    return list(first).map((one) => {
      const [id, fields] = list(one);
      return [text(id), list(fields).map(text)];
    });
  }

  /** The events of entries. One of BullMQ's own is told as it is, without its mark. */
  async #told(entries: readonly Entry[]): Promise<Entry[]> {
    const read = entries.map(([id, fields]) => ({ id, fields: ownFields(fields), of: fieldsOf(fields) }));
    const ids = [...new Set(read.filter(({ of }) => of.id && !of.dq && LOOKED_AT.has(of.event ?? '')).map(({ of }) => of.id!))];
    const messages = new Map<string, Seen>();
    for (const one of await Promise.all(ids.map((id) => this.place.dq('GET', id)))) {
      const found = seen(one);
      if (found?.reason === 'children') found.error ??= await this.why(found.id);
      if (found) messages.set(text(found.id), found);
    }
    return read.flatMap(({ id, fields, of }) => (of.dq || of.at === undefined ? [[id, fields] as Entry] : this.#translated(of, messages.get(of.id ?? '')).map((words): Entry => [id, words])));
  }

  /** The events of BullMQ for a transition of a message. */
  #translated(of: Record<string, string>, found: Seen | undefined): string[][] {
    const jobId = ['jobId', of.id ?? ''];
    const due = String(Number(of.at) + Number(of.delay ?? 0));
    switch (of.event) {
      case 'sent': {
        const added = ['event', 'added', ...jobId, 'name', found ? stored(found.payload).name : ''];
        if (found?.children) return [added, ['event', 'waiting-children', ...jobId]];
        return of.delay ? [added, ['event', 'delayed', ...jobId, 'delay', due]] : [added];
      }
      case 'ready':
        // The event was told with the release.
        if (this.#released.delete(of.id ?? '')) return [];
        return [['event', 'waiting', ...jobId, ...(this.#back.delete(of.id ?? '') ? ['prev', 'active'] : [])]];
      case 'delivered':
        return [['event', 'active', ...jobId, 'prev', 'waiting']];
      case 'acked':
        // A worker that leaves no record has told the result itself.
        return found?.state === 'finished' ? [['event', 'completed', ...jobId, 'returnvalue', found.result ?? 'null', 'prev', 'active']] : [];
      case 'nacked':
        this.#back.add(of.id ?? '');
        return of.delay ? [['event', 'delayed', ...jobId, 'delay', due]] : [];
      case 'timeout':
        this.#back.add(of.id ?? '');
        return [['event', 'stalled', ...jobId]];
      case 'dead':
        this.#back.delete(of.id ?? '');
        return found?.state === 'dead' ? failed(found, of.reason ?? '') : [];
      case 'rescheduled':
        return of.delay ? [['event', 'delayed', ...jobId, 'delay', due]] : [];
      case 'released':
        if (of.delay) return [['event', 'delayed', ...jobId, 'delay', due]];
        this.#released.add(of.id ?? '');
        return [['event', 'waiting', ...jobId, 'prev', 'waiting-children']];
      case 'redriven':
        return [['event', 'waiting', ...jobId, 'prev', 'failed']];
      case 'cancelled':
        return of.id ? [['event', 'removed', ...jobId]] : [];
      default:
        return [];
    }
  }

  /** Adds an event of an application. */
  async publish(fields: Record<string, string | number>, most: number): Promise<string> {
    const words = Object.entries(fields).flatMap(([name, value]): Word[] => [name, String(value)]);
    const limit = most ? ['MAXLEN', '~', String(most)] : [];
    return text(await this.place.call('XADD', this.place.of('events'), ...limit, '*', ...OWN_ENTRY, ...words));
  }

  close(): void {
    this.#closed = true;
    this.#cut.abort(new Error('the backend is closed'));
    this.#connection?.close();
  }
}

/** The fields of an entry without the mark of the driver's own. */
function ownFields(fields: string[]): string[] {
  return fields[0] === OWN_ENTRY[0] ? fields.slice(OWN_ENTRY.length) : fields;
}

function fieldsOf(fields: readonly string[]): Record<string, string> {
  const of: Record<string, string> = {};
  for (let at = 0; at < fields.length; at += 2) of[fields[at]!] = fields[at + 1]!;
  return of;
}

function failed(found: Seen, reason: string): string[][] {
  const jobId = ['jobId', text(found.id)];
  const why = found.error ?? (reason === 'timeouts' ? 'job stalled more than allowable limit' : reason);
  const job = jobSeen(found);
  return [
    ['event', 'failed', ...jobId, 'failedReason', why, 'prev', 'active'],
    ...(job.attemptsMade >= (job.opts.attempts ?? 1) ? [['event', 'retries-exhausted', ...jobId, 'attemptsMade', String(job.attemptsMade)]] : []),
  ];
}
