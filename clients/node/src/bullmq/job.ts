/** Jobs of BullMQ as messages: the payload, the options of DQ.SEND, and back. */

import type { JobJson } from 'bullmq';

import { shaped } from '../replies.js';
import type { Word } from '../words.js';

/** The group of the jobs with a priority, which is their score. They come after the jobs without one. */
export const PRIORITIZED = ':priority';
/** The group of the jobs that were added with `lifo`. They come before all others, the last one first. */
export const LIFO = ':lifo';

/**
 * The data that a job has gathered since it was added. It is in the payload while the job waits, and in its note while
 * it runs.
 */
export interface Gathered {
  /** A version that grows with each change: the newer of note and payload is valid. */
  v: number;
  progress?: unknown;
  /** Data that replaces the first data. A JSON text. */
  data?: string;
  /** A JSON text. */
  stacktrace?: string;
  /** Attempts before the job was sent anew by a retry. */
  made?: number;
  started?: number;
  /** How often the job had stalled by then. */
  stalled?: number;
  /** The wait after its last failure, in ms. */
  delay?: number;
  /** Metadata of telemetry. */
  tm?: string;
}

/** The payload. */
export interface Stored {
  name: string;
  data: unknown;
  opts?: Record<string, unknown>;
  timestamp: number;
  parent?: JobJson['parent'];
  parentKey?: string;
  repeatJobKey?: string;
  deduplicationId?: string;
  gathered?: Gathered;
}

/** The fields of DQ.GET that are read. */
export interface Seen {
  id: string;
  state: string;
  payload: Buffer;
  attempt: number;
  failures: number;
  timeouts: number;
  group: string | null;
  score: number | null;
  sentAt: number;
  dueAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  consumer: string | null;
  receipt: number | null;
  error: string | null;
  result: string | null;
  reason: string | null;
  note: string | null;
  children: { total: number } | null;
}

/** Reads the reply of DQ.GET. */
export function seen(reply: unknown): Seen | null {
  return reply === null || reply === undefined || reply === false ? null : shaped<Seen>(reply);
}

/** The options of a job without those that have no effect. */
function kept(opts: object): Record<string, unknown> | undefined {
  const all = Object.entries(opts).filter(([name, value]) => value !== undefined && !(name === 'attempts' && value === 0));
  return all.length ? Object.fromEntries(all) : undefined;
}

/** Writes the payload of a job. */
export function payloadOf(job: JobJson): string {
  const gathered: Gathered = { v: 0 };
  if (job.progress) gathered.progress = job.progress;
  if (job.stacktrace && job.stacktrace !== '[]' && job.stacktrace !== 'null') gathered.stacktrace = job.stacktrace;
  if (job.attemptsMade) gathered.made = job.attemptsMade;
  if (job.attemptsStarted) gathered.started = job.attemptsStarted;
  if (job.stalledCounter) gathered.stalled = job.stalledCounter;
  return written({
    name: job.name,
    data: undefined,
    opts: kept(job.opts),
    timestamp: job.timestamp,
    parent: job.parent,
    parentKey: job.parentKey,
    repeatJobKey: job.repeatJobKey,
    deduplicationId: job.deduplicationId,
    gathered: Object.keys(gathered).length > 1 ? gathered : undefined,
  }, job.data);
}

/** Writes a payload with data that are JSON already. */
export function written(stored: Stored, data: string): string {
  return `${JSON.stringify({ ...stored, data: undefined }).slice(0, -1)},"data":${data || '{}'}}`;
}

/** Reads a payload. One that is not of BullMQ is a job without a name, with the payload as its data. */
export function stored(payload: Buffer | string): Stored {
  const words = payload.toString();
  try {
    const read = JSON.parse(words) as Stored;
    if (read && typeof read === 'object' && 'name' in read) return read;
    return { name: '', data: read, timestamp: 0 };
  } catch {
    return { name: '', data: words, timestamp: 0 };
  }
}

/** The most bytes of a note and of an error. */
const MOST_TEXT = 64 * 1024;
/** The bytes of a note that are kept free for the end of a run: a stack trace, a wait, metadata. */
const SPARE = 4 * 1024;

/** Writes what a run has gathered. The oldest stack traces are left out if there is no room for them, and the last one is cut. */
export function noteOf(more: Gathered, room = MOST_TEXT): string {
  let note = JSON.stringify(more);
  if (Buffer.byteLength(note) <= room) return note;
  let traces = JSON.parse(more.stacktrace ?? '[]') as string[];
  while (traces.length && Buffer.byteLength(note) > room) {
    const [only = ''] = traces;
    traces = traces.length > 1 ? traces.slice(1) : only.length > 200 ? [only.slice(0, only.length / 2)] : [];
    note = JSON.stringify({ ...more, stacktrace: JSON.stringify(traces) });
  }
  return note;
}

/** Writes what a job gathers while it runs. Undefined if that is too long for a note. */
export function gathering(more: Gathered): string | undefined {
  const note = noteOf(more, MOST_TEXT - SPARE);
  return Buffer.byteLength(note) <= MOST_TEXT - SPARE ? note : undefined;
}

/** The text of an error, cut to what is kept of it. */
export function errorOf(reason: unknown): string {
  const text = String(reason ?? '');
  return Buffer.byteLength(text) <= MOST_TEXT ? text : text.slice(0, MOST_TEXT / 4);
}

/** Reads what a job has gathered, from its note and its payload. */
export function gathered(of: Stored, note: string | null | undefined): Gathered {
  const first = of.gathered ?? { v: 0 };
  if (!note) return first;
  try {
    const second = JSON.parse(note) as Gathered;
    return second.v >= first.v ? second : first;
  } catch {
    return first;
  }
}

/** Makes the job that BullMQ reads, of the payload and the gathered data. */
export function jobOf(id: string, of: Stored, more: Gathered): JobJson {
  const opts = of.opts ?? {};
  return {
    id,
    name: of.name,
    data: more.data ?? JSON.stringify(of.data ?? {}),
    opts,
    progress: (more.progress ?? 0) as JobJson['progress'],
    attemptsMade: more.made ?? 0,
    attemptsStarted: more.started ?? 0,
    timestamp: of.timestamp,
    delay: (opts.delay as number | undefined) ?? 0,
    priority: (opts.priority as number | undefined) ?? 0,
    failedReason: '',
    stacktrace: more.stacktrace ?? '[]',
    returnvalue: 'null',
    stalledCounter: more.stalled ?? 0,
    ...(of.parent && { parent: of.parent }),
    ...(of.parentKey !== undefined && { parentKey: of.parentKey }),
    ...(of.repeatJobKey !== undefined && { repeatJobKey: of.repeatJobKey }),
    ...(of.deduplicationId !== undefined && { deduplicationId: of.deduplicationId }),
  };
}

/** Makes the job that BullMQ reads, of the reply of DQ.GET. */
export function jobSeen(of: Seen): JobJson {
  const first = stored(of.payload);
  const more = gathered(first, of.note);
  const job = jobOf(of.id, first, more);
  job.attemptsMade += of.failures - of.timeouts + (of.state === 'finished' ? 1 : 0);
  job.attemptsStarted += of.attempt;
  job.stalledCounter += of.timeouts;
  if (of.state === 'retry') job.delay = more.delay ?? 0;
  else if (of.state !== 'delayed') job.delay = 0;
  if (of.startedAt !== null && of.attempt > 0) job.processedOn = of.startedAt;
  if (of.finishedAt !== null) job.finishedOn = of.finishedAt;
  if (of.error !== null) job.failedReason = of.error;
  if (of.result !== null) job.returnvalue = of.result;
  const space = of.consumer?.indexOf(' ') ?? -1;
  if (space >= 0) job.processedBy = of.consumer!.slice(space + 1);
  return job;
}

/** The group that only gives a job its place in the order, if it needs one. */
export function lineOf(opts: JobJson['opts']): string | undefined {
  if ('group' in opts && opts.group) return undefined;
  return (opts.priority ?? 0) > 0 ? PRIORITIZED : opts.lifo ? LIFO : undefined;
}

let order = 0;

/** When a job is due: in so many ms, or at a time if the application has given the job a time of its own. */
export function dueWords(job: JobJson): Word[] {
  const delay = job.delay ?? job.opts.delay ?? 0;
  if (delay <= 0) return [];
  const at = job.timestamp + delay;
  if (job.opts.timestamp) return at > Date.now() ? ['AT', String(at)] : [];
  return at > Date.now() ? ['DELAY', String(Math.ceil(at - Date.now()))] : [];
}

/** The options of DQ.SEND for a job, but when it is due. With `first` it comes before others of its priority. */
export function sendWords(job: JobJson, first = false): Word[] {
  const opts = job.opts as JobJson['opts'] & { group?: { id: string | number } };
  const words: Word[] = [];
  const priority = opts.priority ?? 0;
  const group = opts.group ? String(opts.group.id) : lineOf(opts);
  if (group) words.push('GROUP', group);
  if (group === LIFO) words.push('PRIORITY', '-1', 'SCORE', String(-(Date.now() * 1000 + (order++ % 1000))));
  if (priority > 0) words.push('PRIORITY', '1', 'SCORE', String(first ? priority - ((Date.now() % 2 ** 31) + 1) / 2 ** 32 : priority));
  const retain = retainOf(opts.removeOnComplete);
  if (retain !== undefined) words.push('RETAIN', String(retain));
  if (job.parent?.id) {
    words.push('PARENT', job.parent.queueKey, job.parent.id);
    const { fpof, idof, rdof, cpof } = job.parent;
    if (fpof) words.push('ONDEAD', 'DIE');
    else if (idof || rdof || cpof) words.push('ONDEAD', 'GO');
  }
  return words;
}

/** The command that sends a job anew in its own place. It stays delayed for what is left, and waits for its children. */
export function sentAnew(key: string, found: Seen, job: JobJson, other: { first?: boolean; delay?: number; children?: number } = {}): Word[] {
  const waits = found.state === 'delayed' || found.state === 'retry' || found.state === 'held';
  const left = other.delay ?? (waits ? Math.max(0, found.dueAt - Date.now()) : 0);
  const children = other.children ?? (found.state === 'held' ? (found.children?.total ?? 0) : 0);
  return [
    'DQ.SEND', key, payloadOf(job), 'ID', found.id, 'REPLACE', ...sendWords(job, other.first),
    ...(left > 0 ? ['DELAY', String(Math.ceil(left))] : []),
    ...(children > 0 ? ['CHILDREN', String(children)] : []),
  ];
}

/** How long the record of a job is kept by its `removeOnComplete`, in ms. Undefined: as long as the queue says. */
function retainOf(keep: JobJson['opts']['removeOnComplete']): number | undefined {
  if (keep === true || keep === 0) return 0;
  if (typeof keep === 'object' && keep && 'count' in keep && keep.count === 0) return 0;
  if (typeof keep === 'object' && keep && 'age' in keep && keep.age !== undefined) return Math.round(keep.age * 1000);
  return undefined;
}

/** The state of a message in the words of BullMQ. */
export function stateOf(of: Pick<Seen, 'state' | 'group'>): 'completed' | 'failed' | 'active' | 'delayed' | 'prioritized' | 'waiting' | 'waiting-children' | 'unknown' {
  switch (of.state) {
    case 'ready':
    case 'blocked':
      return of.group === PRIORITIZED ? 'prioritized' : 'waiting';
    case 'delayed':
    case 'retry':
      return 'delayed';
    case 'running':
      return 'active';
    case 'finished':
      return 'completed';
    case 'dead':
      return 'failed';
    case 'held':
      return 'waiting-children';
    default:
      return 'unknown';
  }
}

/** Writes an id as a pattern that matches only it. */
export function exactly(id: string): string {
  return id.replace(/[\\*?[\]]/g, '\\$&');
}
