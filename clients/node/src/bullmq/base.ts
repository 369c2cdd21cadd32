/** The members that every backend has, whatever BullMQ uses it for. */

import { EventEmitter } from 'node:events';

import type { IQueueBackend, QueueBaseOptions, WorkerOptions } from 'bullmq';

import type { RedisClient } from '../adapter.js';
import { isTransient } from '../errors.js';
import { Adding } from './adding.js';
import { Ahead } from './ahead.js';
import { Changing } from './changing.js';
import { Events } from './events.js';
import { Fetching } from './fetching.js';
import { Flows } from './flows.js';
import { Late } from './late.js';
import { Leases } from './leases.js';
import { Looking } from './looking.js';
import { Making } from './making.js';
import { Numbers } from './numbers.js';
import { persist } from './persist.js';
import type { Place } from './place.js';
import { Removing } from './removing.js';
import { Schedulers } from './schedulers.js';
import { Settings } from './settings.js';
import { Waiting } from './waiting.js';
import { Working } from './working.js';

/** Milliseconds for which a worker that stops and has no job waits for a silent server. */
const STOPPING = 2000;

/** The same for one that is closed by force. */
const FORCED = 250;

/** The connection of a backend, and what the backend is for. */
export interface Use {
  client: RedisClient;
  /** Closes the client, if it belongs to the backend. */
  close: () => void;
  /** Whether the connection reads events. */
  blocking: boolean;
  /** Whether the connection is that of a worker. */
  working: boolean;
  /** How many jobs its worker runs at once, now. */
  concurrency: () => number;
  /** It belongs to another backend, which tells what happens to the client. */
  sibling?: boolean;
}

/** The connections of a backend, the names of its queue, and the parts that do its work. */
export class Base extends EventEmitter {
  readonly minimumBlockTimeout = 0.001;
  readonly maximumBlockTimeout = 10;
  closing: Promise<void> | undefined;
  protected readonly making: Making;
  protected readonly leases: Leases;
  protected readonly working: Working;
  protected readonly waiting: Waiting;
  protected readonly adding: Adding;
  protected readonly changing: Changing;
  protected readonly looking: Looking;
  protected readonly removing: Removing;
  protected readonly flows: Flows;
  protected readonly schedulers: Schedulers;
  protected readonly settings: Settings;
  protected readonly events: Events;
  #ready: Promise<void> | undefined;

  constructor(
    readonly place: Place,
    readonly opts: QueueBaseOptions<unknown>,
    readonly use: Use,
  ) {
    super();
    const options = opts as Partial<WorkerOptions>;
    const closed = () => this.working.closed;
    this.making = new Making(place);
    this.leases = new Leases(place);
    this.waiting = new Waiting(place, this.clientName(options.name ? `:w:${options.name}` : ''));
    const fetching = new Fetching(place, new Ahead(place, closed), closed, () => this.leases.count > 0);
    this.working = new Working(place, this.making, this.leases, fetching, this.waiting, new Late(place), options, use.concurrency);
    this.adding = new Adding(place, this.making, new Numbers(place));
    this.changing = new Changing(place, this.making, this.leases, () => this.working.lease);
    this.looking = new Looking(place, this.making);
    this.schedulers = new Schedulers(place, this.adding, () => this.removing);
    this.settings = new Settings(place, this.making);
    this.removing = new Removing(place, this.making, (found) => this.schedulers.has(found), () => this.settings.noLimits());
    this.flows = new Flows(place);
    this.events = new Events(place, this.making, async (id) => (await this.looking.job(id))?.failedReason ?? '');
    if (!use.sibling) this.#listen(1);
  }

  readonly #failed = (error: Error) => {
    if (this.listenerCount('error') > 0) this.emit('error', error);
  };

  /** Many queues may share a client, and Node warns of many listeners. */
  #listen(one: 1 | -1): void {
    const client = this.use.client as unknown as EventEmitter;
    if (client.getMaxListeners() > 0) client.setMaxListeners(client.getMaxListeners() + one);
    if (one > 0) client.on('error', this.#failed);
    else client.removeListener('error', this.#failed);
  }

  // ---- the connection

  waitUntilReady(): Promise<void> {
    this.#ready ??= this.#connected().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** A worker begins only once: BullMQ does not start one again that could not. So it outlives a loss, and tells it. */
  #connected(): Promise<void> {
    const telling = () =>
      this.#connect().catch((error: Error) => {
        if (isTransient(error)) this.#failed(error);
        throw error;
      });
    return this.use.working ? persist(telling, () => this.closing !== undefined) : this.#connect();
  }

  async #connect(): Promise<void> {
    if (this.place.name) await this.making.make();
    if (this.use.working) this.place.clock?.start();
    if (this.use.working) await this.waiting.connect();
    if (this.use.blocking) {
      await this.making.tell();
      await this.events.open(this.clientName(':qe'));
    }
    this.emit('ready');
  }

  /** With `force` the worker has jobs that run, and nothing waits for them. */
  close(force = false): Promise<void> {
    return (this.closing ??= this.#close(force));
  }

  async #close(force: boolean): Promise<void> {
    await this.#stop(force ? FORCED : this.#patience);
    await this.working.close();
    await this.disconnect();
    this.place.clock?.stop();
    if (!this.use.sibling) this.#listen(-1);
    this.use.close();
    this.emit('close');
  }

  async disconnect(): Promise<void> {
    this.waiting.close();
    this.events.close();
  }

  async setName(name: string): Promise<void> {
    await this.events.name(name);
  }

  async disconnectBlocking(): Promise<void> {
    await this.#stop(this.#patience);
  }

  async reconnectBlocking(): Promise<void> {
    this.place.bound?.go();
    this.waiting.go();
  }

  /** Takes no more jobs. From now on a server may be silent for so many ms. */
  async #stop(ms: number): Promise<void> {
    this.place.bound?.begin(ms);
    await this.waiting.stop(Math.min(ms, STOPPING));
  }

  /** The ack of a job matters for as long as its lease lasts. */
  get #patience(): number {
    return this.leases.count > 0 ? this.working.lease : STOPPING;
  }

  /** The connection for another queue of the same server. */
  protected get useOfSibling(): Use {
    return { ...this.use, close: () => {}, blocking: false, working: false, sibling: true };
  }

  /** The client of Redis, for dashboards that show its INFO. */
  get client(): RedisClient {
    return this.use.client;
  }

  // ---- names

  get qualifiedName(): string {
    return this.place.key;
  }

  get keys(): IQueueBackend['keys'] {
    return {};
  }

  toKey(type: string): string {
    return this.place.of(type);
  }

  parseNodeKey(key: string): { prefix: string; queueName: string; id: string } {
    const [, prefix = '', queueName = '', id = ''] = /^(.*?):([^:]*):(.*)$/.exec(key) ?? [];
    return { prefix, queueName, id };
  }

  clientName(suffix = ''): string {
    return `${this.place.prefix}:${Buffer.from(this.place.name).toString('base64')}${suffix}`;
  }
}
