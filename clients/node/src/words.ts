/** The words of commands: options by name, and how they are written on the wire. */

/** One argument of a command. */
export type Word = string | Buffer;

/** A payload or a result: text, which is sent as UTF-8, or bytes. */
export type Payload = string | Uint8Array;

/** A point in time: Unix milliseconds, or a Date. */
export type Instant = number | Date;

/** The growth of the wait after a failure, and its length in ms. */
export type Backoff = readonly [kind: 'FIXED' | 'LINEAR' | 'EXP', ms: number];

/** How long a message waits for a signal (at least 1 ms). True means without end. */
export type Parking = true | number;

/** The states of a message. */
export type State = 'delayed' | 'ready' | 'blocked' | 'retry' | 'held' | 'running' | 'finished' | 'dead' | 'cancelled';

/** Options of one message. One that is left out or null has the value of the queue. Spans of time are ms. */
export interface SendOptions {
  /** The message is due this long from now. Not together with `at`. */
  delay?: number | null;
  /** The message is due at this time. A time in the past means now. */
  at?: Instant | null;
  /** The group. The messages of a group are delivered in order, at most GROUPCONCURRENCY at a time. */
  group?: string | null;
  /** Its position in the group. The default is its due time. */
  score?: number | null;
  /** From -128 to 127, the lower first. The default is 0. */
  priority?: number | null;
  /** How long a consumer may hold it, at least 1. */
  lease?: number | null;
  /** Number of failures after which it is delivered again. -1 means all. */
  retries?: number | null;
  /** Number of leases that ran out or were lost after which it is dead. 0 means no limit. */
  maxTimeouts?: number | null;
  /** Number of its last failed attempts that are kept, 0 to 100. */
  errors?: number | null;
  /** The wait after a failure. */
  backoff?: Backoff | null;
  /** The message is dead this long after its due time if it is not finished by then. 0 means never. */
  ttl?: number | null;
  /** The message is dead if it is not finished by this time. Not together with `ttl`. */
  expireAt?: Instant | null;
  /** How long its record is kept. 0 means not at all. */
  retain?: number | null;
  /**
   * A deduplication id, and how long it counts from this send, at least 1: until then a send with the same id adds
   * nothing, and returns the id of this message.
   */
  dedupId?: readonly [id: string, ms: number] | null;
  /** Only with `replace`: it is due at the latest this long after the first of the sends that replaced each other. */
  maxWait?: number | null;
  /** Only with `group`: it is added only if the group has a pending or running message. */
  ifGroup?: boolean;
  /** A label, by which workers choose the handler. */
  type?: string | null;
  /** Fields that are delivered with the payload. */
  headers?: Readonly<Record<string, string | number>> | null;
  /** The batch that it joins. */
  batch?: string | null;
  /** Holds the message until this number of messages that name it as their `parent` have ended. */
  children?: number | null;
  /** The message of which this one is a child: the whole key of its queue, and its id. */
  parent?: readonly [key: string, id: string] | null;
  /** The effect of its death on its parent: the parent holds on, counts this one as ended, or dies. */
  onDead?: 'HOLD' | 'GO' | 'DIE' | null;
  /** The message is held until a signal comes: for this long at most, or without end (true). */
  park?: Parking | null;
  /** Names of up to 8 limits that it needs room in. */
  limits?: readonly string[] | null;
  /** The cost of the message for each of its limits, and for its group's turn with FAIR COST. The default is 1. */
  cost?: number | null;
  /** The message is held until all messages of this batch have ended. */
  after?: string | null;
  /** The effect of a dead message of that batch: it holds on, counts as ended, or kills. Only with `after`. */
  onFail?: 'HOLD' | 'GO' | 'DIE' | null;
}

/** Options of one message that may have an id of its own. */
export interface SendOneOptions extends SendOptions {
  /** Its id. A taken id adds nothing. */
  id?: string | null;
  /** Whether it replaces a message of this id that waits. */
  replace?: boolean;
  /** Only with `replace`: if the message of that id is running, this one is sent when that run has ended. */
  rerun?: boolean;
}

/** The times of a schedule, and the treatment of missed times. */
export type ScheduleOptions = SendOptions & {
  missed?: 'SKIP' | 'ONCE' | 'ALL';
  overlap?: 'QUEUE' | 'SKIP';
  /** The schedule has no fire time after this one. */
  until?: Instant;
  /** The schedule ends after this number of messages. */
  times?: number;
  /** The greatest delay of each message beyond its due time, in ms. */
  jitter?: number;
} & ({ cron: string; tz?: string } | { every: number; start?: Instant });

/** Options of DQ.CREATE and DQ.ALTER. The command reference explains them. Spans of time are ms. */
export interface QueueOptions {
  lease?: number;
  retries?: number;
  maxTimeouts?: number;
  errors?: number;
  backoff?: Backoff;
  maxBackoff?: number;
  jitter?: number;
  ttl?: number;
  retain?: number;
  retainCount?: number;
  deadRetain?: number;
  deadCount?: number;
  dedup?: number;
  maxLen?: number;
  maxBytes?: number;
  maxRunning?: number;
  /** Maximum number of deliveries in any window of this length. 0 removes the limit. */
  rate?: Rate | 0;
  groupConcurrency?: number;
  onRetry?: 'BLOCK' | 'SKIP' | 'ALONE';
  onDead?: 'CONTINUE' | 'BLOCK';
  /**
   * The measure by which groups take turns: the number of messages, the time that workers held them, or their costs.
   */
  fair?: 'COUNT' | 'TIME' | 'COST';
  /** Whether payloads of messages that rest are kept packed. */
  compress?: 'ON' | 'OFF';
  /** Failures in a window that open the breaker, and how long it is open. 0 removes it. */
  breaker?: { failures: number; per: number; open: number; max?: number } | 0;
  /** The key of the queue to which messages go that die, and for which reasons; none means all. '' ends it. */
  deadTo?: string | [key: string, ...reasons: string[]];
  /** The key of the stream to which each transition of a message is added. '' ends it. */
  events?: string;
  /** Maximum number of entries of that stream. */
  eventsLen?: number;
  /** Whether messages can be added. 'OFF' refuses them with a QueueClosedError, so that the queue can be emptied. */
  sends?: 'ON' | 'OFF';
}

/** Deliveries in any window of `per` ms. */
export interface Rate {
  limit: number;
  per: number;
}

/** Options of DQ.LIMIT. */
export interface LimitOptions {
  /** How many messages may be leased at once. */
  concurrency?: number;
  /** Up to four times how much may begin in any window. */
  rates?: readonly Rate[];
  /** `concurrency` and `rates` count the costs of the messages. */
  weight?: boolean;
}

/** Conditions of DQ.FIND. A message is found if all that are given apply. Patterns are those of KEYS. */
export interface Conditions {
  /** A pattern of the id. */
  id?: string;
  type?: string;
  group?: string;
  batch?: string;
  /** The parent: the key of its queue, and its id. */
  parent?: readonly [key: string, id: string];
  /** A header: its field and its value. */
  header?: readonly [field: string, value: string];
  /** A pattern of the last error. */
  error?: string;
  /** A pattern of the payload, which is matched up to its first 64 KiB. */
  payload?: string;
  /** The time that orders the state is this one or later. */
  since?: Instant;
  /** The time that orders the state is before this one. */
  until?: Instant;
  /** The last message comes first. */
  rev?: boolean;
}

/** Returns a value as words of the wire. */
export function word(value: string | number | bigint | Uint8Array | Date): Word {
  if (typeof value === 'string' || Buffer.isBuffer(value)) return value;
  if (value instanceof Date) return String(value.getTime());
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return String(value);
}

/** Returns options as words: the name in upper case, then the value. `true` gives the name alone. */
export function options(given: object): Word[] {
  const words: Word[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    const upper = name.toUpperCase();
    if (value === true) words.push(upper);
    else if (name === 'headers') words.push(upper, ...headers(value));
    else if (name === 'rate' && value !== 0) words.push(upper, word(value.limit), 'PER', word(value.per));
    else if (name === 'rates') for (const rate of value) words.push(...options({ rate }));
    else if (name === 'limits') words.push(...(value.length ? [upper, String(value.length), ...value] : []));
    else if (name === 'park') words.push(upper, 'FOR', word(value));
    else if (name === 'breaker' && value !== 0) words.push(upper, ...breaker(value));
    else if (Array.isArray(value)) words.push(upper, ...value.map(word));
    else words.push(upper, word(value));
  }
  return words;
}

function headers(fields: Record<string, string | number>): Word[] {
  const pairs = Object.entries(fields);
  return [String(pairs.length), ...pairs.flatMap(([field, value]) => [field, String(value)])];
}

function breaker({ failures, ...spans }: { failures: number; per: number; open: number; max?: number }): Word[] {
  return [String(failures), ...options(spans)];
}
