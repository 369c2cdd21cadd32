/** Makes backends for BullMQ. */

import type { BackendFactory, QueueBaseOptions, WorkerOptions } from 'bullmq';

import type { RedisClient } from '../adapter.js';
import { serverOf } from '../connection.js';
import type { Coding } from '../middleware.js';
import { Offload } from '../offload.js';
import { DqQueueBackend } from './backend.js';
import { Bound } from './bound.js';
import { Place } from './place.js';
import { SealedBackend } from './sealed.js';

export interface DqBackendOptions {
  /** A client of ioredis or node-redis for all queues and workers. Without it, each has what BullMQ is given as `connection`. */
  connection?: RedisClient;
  /** The first part of the key of each queue, if BullMQ is given no `prefix`. The default is `bull`. */
  prefix?: string;
  /**
   * For tests that replace the timers of Node: new queues follow the time of this process (`Date.now()`), and not that of
   * the server.
   */
  clock?: 'server' | 'process';
  /** Encrypts the data and the return values of jobs: a Secrets, a Compression, or Layers of them. */
  secrets?: Coding;
}

/** A client that belongs to one backend, or to the application. */
interface Client {
  client: RedisClient;
  /** Closes the client, if it belongs to the backend. */
  close: () => void;
}

/**
 * Makes a factory of backends. Give it to BullMQ once, by `setDefaultBackendFactory(createDqBackend())`, or as the last
 * argument of the constructors.
 */
export function createDqBackend(options: DqBackendOptions = {}): BackendFactory<DqQueueBackend> {
  // The sweep of an Offload looks for the headers of messages, and jobs have none.
  if (options.secrets?.parts.some((one) => one instanceof Offload)) throw new TypeError('BullMQ: Offload is not supported');
  return function (this: unknown, name, opts, { blocking = false, withBlockingConnection: working = false } = {}) {
    const { client, close } = clientOf(options.connection ?? opts.connection);
    const server = serverOf(client);
    if (server.prefix) {
      close();
      throw new TypeError('BullMQ: keyPrefix of ioredis is not supported, use the option prefix instead');
    }
    const prefix = (opts as { prefix?: string }).prefix ?? options.prefix ?? 'bull';
    const place = new Place(server, prefix, name, options.clock === 'process', working ? new Bound() : undefined);
    // BullMQ calls this as a method of the worker, whose concurrency may change. Its options have the first one.
    const worker = this as { concurrency?: number } | undefined;
    const concurrency = () => worker?.concurrency ?? (opts as Partial<WorkerOptions>).concurrency ?? 1;
    const use = { client, close, blocking, working, concurrency };
    const given = opts as QueueBaseOptions<unknown>;
    return options.secrets ? new SealedBackend(place, given, use, options.secrets) : new DqQueueBackend(place, given, use);
  };
}

/** Uses a client as it is. Makes a client of ioredis of any other connection that BullMQ accepts. */
function clientOf(connection: unknown): Client {
  if (connection && typeof connection === 'object' && ('callBuffer' in connection || 'sendCommand' in connection)) {
    return { client: connection as RedisClient, close: () => {} };
  }
  // Only applications that give options need ioredis, as in BullMQ.
  const { Redis } = require('ioredis') as { Redis: new (...given: unknown[]) => RedisClient & { disconnect(): void } };
  const { url, ...given } = (typeof connection === 'string' ? { url: connection } : (connection ?? {})) as { url?: string };
  const own = { maxRetriesPerRequest: null, ...given };
  const client = url ? new Redis(url, own) : new Redis(own);
  return { client, close: () => client.disconnect() };
}
