/** One queue over many servers. */

import { randomUUID } from 'node:crypto';

import type { RedisClient, Server } from './adapter.js';
import { serverOf } from './connection.js';
import type { Middleware } from './middleware.js';
import { type Jobs, Queue, type QueueSettings, WHOLE } from './queue.js';
import type { Counts } from './records.js';
import { shaped } from './replies.js';
import { queues, route, tags } from './routing.js';
import { WaitingConnections } from './waiting.js';
import type { Payload, QueueOptions, SendOneOptions } from './words.js';

/** DQ.NINFO, added up over the nodes. The figures of lateness are those of the worst node. */
export interface FamilyInfo extends Counts {
  /** The number of queues. A partition that was never sent to has none. */
  queues: number;
  oldestReadyAge: number | null;
  latenessP50: number;
  latenessP99: number;
  latenessMax: number;
  /** Clients that wait for the family. */
  blockedClients: number;
}

/** The settings of a Family. */
export interface FamilySettings extends QueueSettings {
  /** Half of the number of partitions, while the family grows: messages of groups that have some in their old queue go there. */
  grownFrom?: number;
}

/**
 * A family: one queue that is cut into partitions, which a Redis Cluster spreads over its nodes.
 *
 * The number of partitions is a power of two. A group is always in one partition, so its order holds. Messages without a
 * group go to the partition of their id. It works on a single server too.
 */
export class Family<J extends Jobs = Jobs> {
  readonly server: Server;
  /** The name of the family: `keyPrefix` of ioredis, and the name that was given. */
  readonly name: string;
  readonly #queues = new Map<string, Queue<J>>();
  readonly #waiting: WaitingConnections;
  readonly #grownFrom: number | undefined;

  constructor(
    readonly client: RedisClient,
    name: string,
    readonly partitions: number,
    private readonly settings: FamilySettings = {},
  ) {
    if (!name || /[{}]/.test(name)) throw new RangeError(`a family must have a name without braces, not ${JSON.stringify(name)}`);
    // Throws if the number is not a power of two.
    tags(partitions);
    this.server = serverOf(client);
    this.name = this.server.prefix + name;
    if (/[{}]/.test(this.server.prefix)) throw new RangeError('a family cannot have a keyPrefix with braces');
    this.#grownFrom = settings.grownFrom;
    if (this.#grownFrom !== undefined && 2 * this.#grownFrom !== partitions) {
      throw new RangeError(`grownFrom is half of the ${partitions} partitions, not ${this.#grownFrom}`);
    }
    this.#waiting = new WaitingConnections(settings.waiting ?? 16);
  }

  get middleware(): readonly Middleware[] {
    return this.settings.middleware ?? [];
  }

  /** Returns the queue that a group belongs to. */
  queue(group: string): Queue<J> {
    return this.queueAt(route(this.name, this.partitions, group));
  }

  /** Returns the queue of a key, such as `message.queue`. */
  queueAt(key: string): Queue<J> {
    let queue = this.#queues.get(key);
    if (!queue) this.#queues.set(key, (queue = new Queue<J>(this.client, key, { ...this.settings, [WHOLE]: true })));
    return queue;
  }

  /** Returns the queues of all partitions. */
  queues(): Queue<J>[] {
    return queues(this.name, this.partitions).map((key) => this.queueAt(key));
  }

  /** Gives all queues these options. Queues that do not exist are made. */
  async ensure(options: QueueOptions = {}): Promise<void> {
    await Promise.all(this.queues().map((queue) => queue.ensure(options)));
  }

  /** DQ.SEND to the queue of its group, or of its id if it has no group. It works like `Queue.send`. */
  async send(payload: Payload, options: SendOneOptions = {}): Promise<string | null> {
    const { group } = options;
    const id = options.id ?? randomUUID();
    const queue = this.queue(group ?? id);
    if (this.#grownFrom !== undefined && group != null) {
      const old = this.queueAt(route(this.name, this.#grownFrom, group));
      if (old !== queue) {
        const sent = await old.send(payload, { ...options, id, ifGroup: true });
        if (sent !== null) return sent;
        // The group has no message in the old queue, or the id is taken there: by another message, or by this one in an
        // earlier try.
        if (await old.get(id)) return options.id == null ? id : null;
      }
    }
    const sent = await queue.send(payload, { ...options, id });
    return sent === null && options.id == null && !options.ifGroup ? id : sent;
  }

  /** Sends data as JSON, with a type. It works like `Queue.add`. */
  add<K extends keyof J & string>(type: K, data: J[K], options: Omit<SendOneOptions, 'type'> = {}): Promise<string | null> {
    return this.send(JSON.stringify(data), { ...options, type });
  }

  /** The sum of DQ.NINFO over all nodes. */
  async info(): Promise<FamilyInfo> {
    const nodes = await this.server.nodes();
    const replies = await Promise.all(nodes.map((node) => this.#waiting.call(node, ['DQ.NINFO', this.name], 0)));
    const [first, ...others] = replies.map((reply) => shaped<FamilyInfo>(reply));
    return others.reduce(added, first!);
  }

  /** Closes the connections that the family has made. The client is yours to close. */
  close(): void {
    this.#waiting.close();
    for (const queue of this.#queues.values()) queue.close();
  }
}

function added(one: FamilyInfo, other: FamilyInfo): FamilyInfo {
  const sum = {} as Record<string, number | null>;
  for (const [field, value] of Object.entries(one)) {
    const more = other[field as keyof FamilyInfo];
    if (value === null || more === null) sum[field] = value ?? more;
    else sum[field] = /^(lateness|oldest)/.test(field) ? Math.max(value, more) : value + more;
  }
  return sum as unknown as FamilyInfo;
}

