import { type CustomTransportStrategy, type MessageHandler, Server } from '@nestjs/microservices';
import { isObservable, lastValueFrom, toArray } from 'rxjs';

import { Park, Reject, Retry, Snooze } from '../errors.js';
import type { Family } from '../family.js';
import type { Context } from '../handling.js';
import type { Message } from '../message.js';
import type { Queue } from '../queue.js';
import { isA, messageOf, textOf } from '../thrown.js';
import { Worker, type WorkerOptions } from '../worker.js';
import { DqContext } from './context.js';
import type { Reply } from './reply.js';

/** The queue of the messages, and the way in which they are worked on. */
export interface DqServerOptions extends WorkerOptions {
  source: Queue | Family;
}

/**
 * The parts of the class `Server` that are used. It is generic since NestJS 11. Parts that older releases lack may be
 * missing.
 */
interface ServerParts {
  readonly logger: { warn(message: string): unknown; error(message: unknown): unknown };
  readonly serializer: { serialize(value: unknown): unknown };
  readonly deserializer: { deserialize(value: unknown, options: object): unknown };
  readonly _status$?: { next(status: 'connected' | 'disconnected'): void };
  initializeSerializer(options: object): void;
  initializeDeserializer(options: object): void;
  getHandlerByPattern(pattern: string): MessageHandler | null;
  onProcessingStartHook?(transport: symbol, context: DqContext, work: () => Promise<void>): void;
  onProcessingEndHook?(transport: symbol, context: DqContext): void;
}

const Base = Server as unknown as new () => ServerParts;

/**
 * The transport strategy of a NestJS microservice: a worker whose handlers are those of controllers.
 *
 * The pattern is the TYPE of a message, and the data is its payload as JSON. An event that fails is tried again, as the
 * queue says. The answer to a request, also an error, is the RESULT of its message.
 */
export class DqServer extends Base implements CustomTransportStrategy {
  readonly transportId = Symbol.for('dq');
  /** A failed event is nacked, which reports it. */
  readonly propagatesEventHandlerErrors = true;
  #worker: Worker | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly options: DqServerOptions) {
    super();
    this.initializeSerializer({});
    this.initializeDeserializer({});
  }

  listen(callback: (...words: unknown[]) => unknown): void {
    const { source, ...options } = this.options;
    this.#worker = new Worker(source as Queue, (message, context) => this.#handle(message, context), options);
    this.#worker.on('warning', (error) => this.logger.warn(error.message));
    this.#worker.on('failed', (message, error) => this.logger.error(`${message.id} failed in attempt ${message.attempt}: ${told(error)}`));
    this.#running = this.#worker.run().then(
      () => this._status$?.next('disconnected'),
      (error: unknown) => {
        this._status$?.next('disconnected');
        this.logger.error(error);
      },
    );
    this._status$?.next('connected');
    callback();
  }

  async close(): Promise<void> {
    this.#worker?.stop();
    await this.#running;
  }

  on(): never {
    throw new Error('the events are those of the worker: unwrap() returns it');
  }

  /** Returns the worker. */
  unwrap<T = Worker>(): T {
    return this.#worker as T;
  }

  async #handle(message: Message, context: Context): Promise<string | undefined> {
    const pattern = message.type ?? '';
    const handler = this.getHandlerByPattern(pattern);
    // The message fails, so that somebody sees it, and redrives it when there is a handler.
    if (!handler) throw new Error(`no handler for pattern ${JSON.stringify(pattern)}`);
    const given = new DqContext([message, context]);
    const data = message.text === '' ? undefined : message.data;
    const packet = (await this.deserializer.deserialize({ pattern, data }, { channel: pattern })) as { data: unknown };
    try {
      const values = await this.#run(handler, packet.data, given);
      return handler.isEventHandler ? undefined : this.#reply({ values });
    } catch (error) {
      if (handler.isEventHandler || [Retry, Reject, Snooze, Park].some((Kind) => isA(error, Kind))) throw asError(error);
      // The answer is an error, and so the work is not done.
      message.effects.clear();
      return this.#answerTo(error);
    }
  }

  /** Returns the answer with the error that a handler has thrown. Not everything that can be thrown has JSON. */
  #answerTo(thrown: unknown): string {
    try {
      if (!isA(thrown, Error)) return this.#reply({ err: thrown });
    } catch {
      // The value is told as a text.
    }
    return this.#reply({ err: { status: 'error', message: messageOf(thrown) } });
  }

  /** Runs a handler to the end of its stream or promise, between the hooks of the framework. */
  #run(handler: MessageHandler, data: unknown, context: DqContext): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const work = async () => {
        try {
          const result: unknown = await handler(data, context);
          resolve(isObservable(result) ? await lastValueFrom(result.pipe(toArray())) : [result]);
        } catch (error) {
          reject(error as Error);
        } finally {
          this.onProcessingEndHook?.(this.transportId, context);
        }
      };
      if (this.onProcessingStartHook) this.onProcessingStartHook(this.transportId, context, work);
      else void work();
    });
  }

  #reply(reply: Reply): string {
    return JSON.stringify(this.serializer.serialize(reply));
  }
}

/** Returns the thrown value as an error. NestJS gives an object with a message in place of one. */
function asError(thrown: unknown): Error {
  return isA(thrown, Error) ? thrown : new Error(told(thrown), { cause: thrown });
}

function told(thrown: unknown): string {
  if (isA(thrown, Error)) return messageOf(thrown);
  try {
    const { message } = thrown as { message?: unknown };
    return typeof message === 'string' ? message : textOf(thrown);
  } catch {
    return textOf(thrown);
  }
}
