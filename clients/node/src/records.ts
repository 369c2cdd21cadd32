/**
 * The records in which the server describes messages, groups and queues. Times are Unix ms. A field that does not apply
 * is null.
 */

import type { State } from './words.js';

/** The batch that a message waits for or waited for, and the messages of it. */
export interface After {
  batch: string;
  pending: number;
  finished: number;
  dead: number;
  cancelled: number;
}

/** The children of a message: how many there are, and how many of them have ended in which way. */
export interface ChildCounts {
  total: number;
  pending: number;
  finished: number;
  dead: number;
  cancelled: number;
  removed: number;
}

/** A child of a message as DQ.CHILDREN shows it. */
export interface Child {
  /** The key of its queue. */
  key: string;
  id: string;
  state: State;
  result: string | null;
  error: string | null;
}

/** A message as DQ.GET, DQ.LIST, DQ.FIND and DQ.PEEK show it. */
export interface Record {
  id: string;
  status: 'pending' | 'running' | 'finished' | 'error' | 'cancelled';
  state: State;
  payload: Buffer;
  /** Deliveries so far. */
  attempt: number;
  failures: number;
  timeouts: number;
  /** -1 means without limit. */
  retriesLeft: number;
  group: string | null;
  score: number | null;
  priority: number;
  type: string | null;
  headers: { [field: string]: string } | null;
  sentAt: number;
  dueAt: number;
  firstStartedAt: number | null;
  startedAt: number | null;
  leaseUntil: number | null;
  finishedAt: number | null;
  consumer: string | null;
  receipt: number | null;
  error: string | null;
  result: string | null;
  reason: 'retries' | 'timeouts' | 'rejected' | 'expired' | 'batch' | 'children' | null;
  /** The note that a consumer has left for the next attempt of the message. */
  note: string | null;
  /** The text of the last signal. */
  signal: string | null;
  batch: string | null;
  after: After | null;
  children: ChildCounts | null;
  /** Of a child: its parent, and the effect of its death on the parent. */
  parent: { key: string; id: string; ondead: string } | null;
  /** Whether another payload waits until its run has ended. */
  rerun: boolean;
  /** The limits that it needs room in. */
  limits: string[];
  /** The cost of the message for each of its limits. */
  cost: number | null;
  firstSentAt: number | null;
  /** The last failed attempts that `errors` keeps, the oldest first. */
  errors: FailedAttempt[];
}

/** A failed attempt of a message: its number, the time of the failure, the consumer, and the error. */
export interface FailedAttempt {
  attempt: number;
  at: number;
  consumer: string | null;
  text: string;
}

/** The reason for the state of a message: the code, a sentence, until when, and what holds it. */
export interface Explanation {
  code: string;
  why: string;
  until: number | null;
  by: string | null;
}

/** A group as DQ.GROUPS shows it. */
export interface Group {
  group: string;
  state: 'ready' | 'running' | 'blocked' | 'paused' | 'waiting';
  waiting: number;
  running: number;
  head: string | null;
  headDueAt: number | null;
  leaseUntil: number | null;
  weight: number;
  concurrency: number;
  breaker: 'closed' | 'open' | 'half-open';
  openUntil: number | null;
}

/** An open batch as DQ.BATCHES shows it. */
export interface Batch {
  batch: string;
  pending: number;
  running: number;
  dead: number;
  finished: number;
  cancelled: number;
  held: number;
}

/** A limit as DQ.LIMITS shows it. */
export interface Limit {
  limit: string;
  /** The name or the pattern that was set for it. Null if nothing limits this name. */
  rule: string | null;
  /** 0 means no limit. */
  concurrency: number;
  /** 1 if `concurrency` and `rates` are about the costs of the messages. */
  weight: number;
  /** How many deliveries may begin in any window of `per` ms, and how many have begun in the last one. */
  rates: { limit: number; per: number; used: number }[];
  running: number;
  runningCost: number;
  /** Groups that wait for this limit. */
  waiting: number;
  /**
   * When a message of cost 1 can begin. Null if only the end of another one makes room, `never` if the first that waits
   * costs more than the limit ever allows.
   */
  nextFree: number | 'never' | null;
}

/** A consumer as DQ.CONSUMERS shows it. */
export interface Consumer {
  name: string;
  running: number;
  lastSeen: number;
  delivered: number;
  acked: number;
  nacked: number;
}

/** A schedule as DQ.SCHEDULES shows it. */
export interface Schedule {
  name: string;
  definition: string;
  nextAt: number | null;
  lastAt: number | null;
  fired: number;
  /** The schedule has no fire time after this one. */
  until: number | null;
  /** How many messages it still sends. */
  times: number | null;
  jitter: number;
  paused: boolean;
  /** The fire times at which it sent nothing. */
  skipped: number;
}

/** The counts of messages by state. */
export type Counts = { [state in State]: number };

/** DQ.INFO. Options of the queue are there too, by their names in lower case. */
export interface Info extends Counts {
  bytes: number;
  groups: number;
  consumers: number;
  blockedClients: number;
  paused: boolean;
  now: number;
  sent: number;
  duplicates: number;
  delivered: number;
  redelivered: number;
  acked: number;
  nacked: number;
  timeouts: number;
  deaths: number;
  expired: number;
  cancellations: number;
  redriven: number;
  nextDueAt: number | null;
  oldestReadyAge: number | null;
  oldestDueAge: number | null;
  latenessP50: number;
  latenessP99: number;
  latenessMax: number;
  breakersOpen: number;
  batches: number;
  [more: string]: number | string | boolean | null;
}

/** DQ.TICK: how much of each kind was processed. */
export interface Ticked {
  due: number;
  timeouts: number;
  dead: number;
  expired: number;
  pruned: number;
  fired: number;
}
