/** A queue on the server, with a method for each command. */

import { randomUUID } from 'node:crypto';

import { type Changing, Plainly } from './changing.js';
import type { RedisClient, Server } from './adapter.js';
import { call, serverOf } from './connection.js';
import { Durably, type DurableOptions } from './durable.js';
import { type Effects, effectWords } from './effects.js';
import { CommandError } from './errors.js';
import { type Next, followingWords, type Signal } from './follow.js';
import { Inspection } from './inspection.js';
import { Message } from './message.js';
import { type Middleware, throughSend } from './middleware.js';
import { acks, type Receipt, receipts } from './receipts.js';
import type { Ticked } from './records.js';
import { list, maybeText, shaped, text } from './replies.js';
import { WaitingConnections } from './waiting.js';
import {
  type Instant,
  type LimitOptions,
  options,
  type Parking,
  type Payload,
  type QueueOptions,
  type Rate,
  type ScheduleOptions,
  type SendOneOptions,
  type SendOptions,
  type State,
  type Word,
  word,
} from './words.js';

/** Options of DQ.FETCH. Spans of time are ms. */
export interface FetchOptions {
  /** The default is 1. */
  count?: number;
  /** How long to wait for a message. 0 waits for ever. Without it, nothing waits. */
  block?: number;
  lease?: number;
  consumer?: string;
  /** A repeated call with the same token and consumer gets the same messages. */
  token?: string;
  group?: string;
  perGroup?: number;
  maxBytes?: number;
  /** The leases end with the connection of this call, or `grace` ms later. */
  bind?: boolean;
  grace?: number;
  /** Messages that are done: they are acked first. */
  ack?: readonly Receipt[];
  /** A result for each message of `ack`. An empty one is none. */
  results?: readonly Payload[];
  /** Effects that go with the one message of `ack`. After an error of them nothing is fetched. */
  apply?: Effects;
  noAck?: boolean;
}

/** Options of DQ.ACK. */
export interface AckOptions {
  /** A text that is kept with the record. */
  result?: Payload;
  /** The cost that each message has really had for its limits. */
  cost?: number;
  /** Changes of other Redis keys in the same step, with one message. `apply.applied` is then what they reply. */
  apply?: Effects;
}

/** Options of DQ.NACK. Spans of time are ms. */
export interface NackOptions {
  delay?: number;
  error?: string;
  note?: string;
  /** Counts no attempt and no failure. With `delay` it is a snooze. */
  silent?: boolean;
  /** Only with `silent`: it is held until a signal comes, for this long at most, or without end (true). */
  park?: Parking;
  /** The message is dead at once. */
  fatal?: boolean;
  pause?: readonly ['GROUP' | 'QUEUE', number];
}

/** Types of messages, each with the type of its JSON payload. */
export type Jobs = Record<string, unknown>;

/** The settings of a Queue. */
export interface QueueSettings {
  /** Milliseconds for which `send` repeats a command while the connection is down. The default is 10,000. */
  patience?: number;
  /** How many calls may wait at the server at a time, each on a connection of its own. The default is 16. */
  waiting?: number;
  /**
   * The methods that send and settle return only when their command is confirmed: `send`, `add`, `sendMany`,
   * `groupPush`, `ack`, `ackSend` and `nack` throw NotConfirmedError otherwise. True: the log of the server is synced
   * to its disk.
   */
  durable?: boolean | DurableOptions;
  /** The code that runs around `send` and `add`, and around the handlers of workers. */
  middleware?: readonly Middleware[];
}

/** Marks that the name of a queue is its whole key: the name of a message's queue has the prefix of the client. */
export const WHOLE = Symbol('whole');

/**
 * A queue on the server. It holds no state: make as many as you like.
 *
 * `J` names the types of messages, and with each the type of its JSON payload, for `add` and for handlers.
 *
 * An error reply is a CommandError, and nothing has changed. After a ConnectionError it is unknown whether the command
 * was run.
 */
export class Queue<J extends Jobs = Jobs> extends Inspection {
  readonly server: Server;
  /** The key of the queue: `keyPrefix` of ioredis, and the name that was given. */
  readonly key: string;
  readonly middleware: readonly Middleware[];
  readonly #waiting: WaitingConnections;
  readonly #changing: Changing;

  constructor(
    readonly client: RedisClient,
    name: string,
    { patience = 10_000, waiting = 16, durable = false, middleware = [], [WHOLE]: isWhole = false }: QueueSettings & { [WHOLE]?: boolean } = {},
  ) {
    super();
    this.server = serverOf(client);
    this.key = isWhole ? name : this.server.prefix + name;
    this.middleware = middleware;
    this.#waiting = new WaitingConnections(waiting);
    this.#changing = durable
      ? new Durably(this.server, this.key, patience, durable === true ? {} : durable)
      : new Plainly(this.server, this.key, patience);
  }

  /** Runs any command of this queue: `queue.do('TICK', 'ADVANCE', 500)`. Strings come back as Buffers. */
  async do(verb: string, ...words: (string | number | Uint8Array)[]): Promise<unknown> {
    return this.call(verb, words.map(word));
  }

  /** Closes the connections of this queue on which calls have waited. The client is yours to close. */
  close(): void {
    this.#waiting.close();
    this.#changing.close();
  }

  protected call(verb: string, words: readonly Word[] = []): Promise<unknown> {
    return call(this.server, [`DQ.${verb}`, this.key, ...words], this.key);
  }

  /** Runs a command that waits up to `block` ms (0: for ever) on a connection of its own. */
  protected async callBlocking(verb: string, words: readonly Word[], block: number): Promise<unknown> {
    const run = async () => {
      const node = await this.server.nodeOf(this.key);
      return this.#waiting.call(node, [`DQ.${verb}`, ...words], block === 0 ? 2 ** 30 : block);
    };
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof CommandError && error.code === 'MOVED')) throw error;
      await this.server.refresh();
      return run();
    }
  }

  // ---- making a queue

  /** DQ.CREATE. Throws if the queue exists. */
  async create(given: QueueOptions & { clock?: 'SERVER' | 'MANUAL' } = {}): Promise<void> {
    await this.call('CREATE', options(given));
  }

  /** DQ.ALTER: changes options of a queue that exists. */
  async alter(given: QueueOptions): Promise<void> {
    await this.call('ALTER', options(given));
  }

  /** Creates the queue, or gives these options to the one that exists. */
  async ensure(given: QueueOptions = {}): Promise<void> {
    const isNew = await this.call('CREATE', ['NX', ...options(given)]);
    if (!isNew && Object.keys(given).length) await this.alter(given);
  }

  // ---- sending

  /**
   * DQ.SEND. Returns the id, or null if the id is taken, and then nothing was added.
   *
   * While the connection is down, it repeats the command. That cannot add a message twice, because each message has an
   * id: yours or a new UUID.
   */
  async send(payload: Payload, given: SendOneOptions = {}): Promise<string | null> {
    const id = given.id ?? randomUUID();
    const sending = { queue: this.key, id, payload, options: given };
    const reply = await throughSend(this.middleware, sending, async () => {
      const words = ['DQ.SEND', this.key, word(sending.payload), ...options({ ...sending.options, id })];
      return maybeText(await this.#changing.send(words, id));
    });
    // An id that was made just now can only be taken by an earlier try of this call. With IFGROUP, null may also mean
    // that the group had no message.
    return reply === null && given.id == null && !given.ifGroup ? id : reply;
  }

  /** Sends data as JSON, with a type. Returns the id, or null if the id is taken. */
  add<K extends keyof J & string>(type: K, data: J[K], given: Omit<SendOneOptions, 'type'> = {}): Promise<string | null> {
    return this.send(JSON.stringify(data), { ...given, type });
  }

  /**
   * DQ.MSEND: adds all or none. Returns the ids, or none if IFGROUP does not hold.
   *
   * The ids come from the server, so it is never repeated here. (ioredis itself repeats commands after a lost
   * connection, unless its `autoResendUnfulfilledCommands` is false.)
   */
  async sendMany(payloads: readonly Payload[], given: SendOptions = {}): Promise<string[]> {
    const words = ['DQ.MSEND', this.key, String(payloads.length), ...payloads.map(word), ...options(given)];
    return list(await this.#changing.call(words)).map(text);
  }

  /** DQ.GROUPPUSH: reads the group from a JSON object. Returns the group and the id, or null if the id is taken. */
  async groupPush(
    json: Payload | object,
    by: readonly string[],
    given: Omit<SendOneOptions, 'group'> & { idPath?: string; scorePath?: string; atPath?: string } = {},
  ): Promise<{ group: string; id: string } | null> {
    const payload = typeof json === 'string' || json instanceof Uint8Array ? word(json) : JSON.stringify(json);
    const words = ['DQ.GROUPPUSH', this.key, payload, 'GROUPBY', String(by.length), ...by, ...options(given)];
    const reply = await this.#changing.call(words);
    const [group, id] = list(reply);
    return group === undefined ? null : { group: text(group), id: text(id) };
  }

  // ---- consuming

  /** DQ.FETCH. With `block` it waits on a connection of its own. */
  async fetch(given: FetchOptions = {}): Promise<Message[]> {
    const { ack = [], results, apply, ...rest } = given;
    const words = ['WITHMETA', ...acks(ack, results), ...effectWords(apply, this.server.prefix), ...options(rest)];
    let reply = given.block === undefined ? await this.call('FETCH', words) : await this.callBlocking('FETCH', [this.key, ...words], given.block);
    if (apply && !apply.isEmpty) {
      const [applied, fetched] = list(reply);
      apply.read(applied);
      reply = fetched;
    }
    return list(reply).map((one) => new Message(this.key, one));
  }

  /**
   * DQ.MFETCH: fetches from the first of several queues that can give, this one before the others. `message.queue` says
   * which it was. In a cluster they must be in one slot.
   */
  async fetchFirst(others: readonly Queue[], given: Omit<FetchOptions, 'ack' | 'results' | 'apply' | 'group'> = {}): Promise<Message[]> {
    const keys = [this.key, ...others.map(({ key }) => key)];
    const words = [String(keys.length), ...keys, 'WITHMETA', ...options(given)];
    const reply =
      given.block === undefined
        ? await call(this.server, ['DQ.MFETCH', ...words], this.key)
        : await this.callBlocking('MFETCH', words, given.block);
    const [key, messages] = list(reply);
    return list(messages).map((one) => new Message(text(key), one));
  }

  /** DQ.ACK. `cost` is what each has really taken of its limits. Returns how many were acked; the other receipts were stale. */
  async ack(done: Receipt | readonly Receipt[], { apply, ...given }: AckOptions = {}): Promise<number> {
    if (!apply || apply.isEmpty) return this.#settle('ACK', receipts(done), options(given));
    const words = ['DQ.ACK', this.key, ...receipts(done), ...options(given), ...apply.words(this.server.prefix)];
    return Number(apply.read(await this.#changing.settle(words, (reply) => reply !== null)));
  }

  /**
   * DQ.ACKSEND: finishes a message and sends the messages and signals that follow from it, all or nothing. Returns the new
   * ids, null for one that is taken, and what `signal` returns for each signal. Returns null, and nothing is done, if the
   * receipt is stale.
   */
  async ackSend(
    done: Receipt,
    following: readonly (Next | Signal)[],
    { apply, ...given }: Pick<AckOptions, 'result' | 'apply'> = {},
  ): Promise<(string | boolean | null)[] | null> {
    const { prefix } = this.server;
    const words = [...receipts(done), ...options(given), ...effectWords(apply, prefix), ...followingWords(following, this.key, prefix)];
    let reply = await this.#changing.settle(['DQ.ACKSEND', this.key, ...words], (reply) => reply !== null);
    if (apply && !apply.isEmpty) {
      const [applied = null, ids = null] = list(reply);
      apply.read(applied);
      reply = ids;
    }
    return reply === null ? null : list(reply).map((one) => (typeof one === 'number' ? one === 1 : maybeText(one)));
  }

  /** DQ.NACK. Returns how many were nacked. */
  async nack(failed: Receipt | readonly Receipt[], given: NackOptions = {}): Promise<number> {
    return this.#settle('NACK', receipts(failed), options(given));
  }

  async #settle(verb: string, all: readonly Word[], more: readonly Word[]): Promise<number> {
    return Number(await this.#changing.settle([`DQ.${verb}`, this.key, ...all, ...more], (reply) => Number(reply) === all.length));
  }

  /** DQ.TOUCH: leases end `lease` ms from now. Returns how many receipts were current. */
  async touch(lease: number, running: Receipt | readonly Receipt[], given: { note?: string } = {}): Promise<number> {
    return Number(await this.call('TOUCH', [String(lease), ...receipts(running), ...options(given)]));
  }

  // ---- changing

  /** DQ.CANCEL. Returns the state each was in, or null. */
  async cancel(...ids: string[]): Promise<(State | null)[]> {
    return list(await this.call('CANCEL', ids)).map(maybeText) as (State | null)[];
  }

  /** DQ.RESCHEDULE. Returns whether the message waits and was moved. */
  async reschedule(id: string, when: { delay: number } | { at: Instant }): Promise<boolean> {
    return Boolean(await this.call('RESCHEDULE', [id, ...options(when)]));
  }

  /** DQ.UPDATE. Returns whether the message waits and was changed. */
  async update(id: string, payload: Payload): Promise<boolean> {
    return Boolean(await this.call('UPDATE', [id, word(payload)]));
  }

  /** DQ.SIGNAL: gives a message this text, and ends its wait for it. Returns false if it is unknown or has ended. */
  async signal(id: string, data?: Payload): Promise<boolean> {
    return Boolean(await this.call('SIGNAL', [id, ...options({ data })]));
  }

  /** DQ.REDRIVE: dead messages are pending again: these, or `count` of them, or all. Returns how many. */
  async redrive(which: { ids?: readonly string[]; count?: number } = {}): Promise<number> {
    const { ids, count } = which;
    const words = ids ? ['IDS', String(ids.length), ...ids] : ['ALL', ...options({ count })];
    return Number(await this.call('REDRIVE', words));
  }

  /** DQ.PURGE: removes messages and records. Returns how many. */
  async purge(which: { state?: State; group?: string } = {}): Promise<number> {
    return Number(await this.call('PURGE', options(which)));
  }

  /** DQ.PAUSE: the queue, or a group, delivers nothing, `for` ms long or until `resume`. */
  async pause(what: { group?: string; for?: number } = {}): Promise<void> {
    await this.call('PAUSE', options(what));
  }

  /** DQ.RESUME. */
  async resume(what: { group?: string } = {}): Promise<void> {
    await this.call('RESUME', options(what));
  }

  /** DQ.GROUPSET. */
  async setGroup(group: string, given: { weight?: number; concurrency?: number; rate?: Rate | 0 }): Promise<void> {
    await this.call('GROUPSET', [group, ...options(given)]);
  }

  /**
   * DQ.LIMIT: limits the messages that name it in `limits`. Without an option the limit is removed. A name with `*` is a
   * pattern, and each name that it matches is limited by itself.
   */
  async limit(name: string, given: LimitOptions = {}): Promise<void> {
    await this.call('LIMIT', [name, ...options(given)]);
  }

  // ---- time

  /** DQ.SCHEDULE: makes the server send the payload at these times. Returns the first of them, in Unix ms. */
  async schedule(name: string, payload: Payload, given: ScheduleOptions): Promise<number> {
    return Number(await this.call('SCHEDULE', [name, ...options({ ...given, payload })]));
  }

  /** DQ.UNSCHEDULE. Returns whether it existed. */
  async unschedule(name: string): Promise<boolean> {
    return Boolean(await this.call('UNSCHEDULE', [name]));
  }

  /** DQ.SCHEDULES PAUSE: stops a schedule until it is resumed. Returns whether it exists. */
  async pauseSchedule(name: string): Promise<boolean> {
    return Boolean(await this.call('SCHEDULES', ['PAUSE', name]));
  }

  /**
   * DQ.SCHEDULES RESUME: lets a schedule go on. The fires that it has missed are skipped. Returns whether it exists.
   */
  async resumeSchedule(name: string): Promise<boolean> {
    return Boolean(await this.call('SCHEDULES', ['RESUME', name]));
  }

  /** DQ.TICK: processes all due events, or moves a manual clock. Returns how much of each kind. */
  async tick(move: { advance?: number; to?: Instant } = {}): Promise<Ticked> {
    return shaped<Ticked>(await this.call('TICK', options(move)));
  }
}
