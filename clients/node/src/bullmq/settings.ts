/** The settings of a whole queue: BullMQ's table of settings, pause, limits. */

import { list, maybeText, shaped, text, texts } from '../replies.js';
import type { Making } from './making.js';
import type { Place } from './place.js';

export class Settings {
  constructor(
    readonly place: Place,
    readonly making: Making,
  ) {}

  get #key(): string {
    return this.place.of('meta');
  }

  /** Keeps settings, and applies them. */
  async set(values: Record<string, string | number>): Promise<number> {
    await this.making.make();
    const { concurrency, max, duration, 'opts.maxLenEvents': most } = values;
    if (concurrency !== undefined) await this.place.dq('ALTER', 'MAXRUNNING', String(concurrency));
    if (max !== undefined && duration !== undefined) await this.place.dq('ALTER', 'RATE', String(max), 'PER', String(duration));
    if (most !== undefined && this.making.tells && Number(most) > 0) await this.making.alter({ EVENTSLEN: String(most) });
    const fields = Object.entries(values).flatMap(([name, value]) => [name, String(value)]);
    if (!fields.length) return 0;
    await this.place.call('HSET', this.#key, ...fields);
    return fields.length / 2;
  }

  async remove(fields: readonly string[]): Promise<number> {
    if (fields.includes('concurrency')) await this.place.dq('ALTER', 'MAXRUNNING', '0');
    if (fields.includes('max')) await this.place.dq('ALTER', 'RATE', '0');
    return fields.length ? Number(await this.place.call('HDEL', this.#key, ...fields)) : 0;
  }

  /** Takes the limits away that were set here, and not those of workers' options. */
  async noLimits(): Promise<void> {
    const all = await this.all();
    await this.remove(['concurrency', 'max', 'duration'].filter((field) => field in all));
  }

  async get(fields: readonly string[]): Promise<(string | null)[]> {
    return fields.length ? list(await this.place.call('HMGET', this.#key, ...fields)).map(maybeText) : [];
  }

  async all(): Promise<Record<string, string>> {
    return texts(await this.place.call('HGETALL', this.#key));
  }

  async has(field: string): Promise<boolean> {
    return Number(await this.place.call('HEXISTS', this.#key, field)) === 1;
  }

  async pause(on: boolean): Promise<void> {
    await this.making.make();
    const key = this.#key;
    await this.place.together(
      on ? [['HSET', key, 'paused', '1'], ['DQ.PAUSE', this.place.key]] : [['HDEL', key, 'paused'], ['DQ.RESUME', this.place.key]],
      [this.place.key, key],
    );
    await this.making.publish(on ? 'paused' : 'resumed');
  }

  /** Pauses the queue for a time. Its end is in a key, because the queue does not tell it. */
  async rateLimit(ms: number): Promise<void> {
    await this.making.make();
    const limiter = this.place.of('limiter');
    if (ms <= 0) return void (await this.freeRate());
    await this.place.call('SET', limiter, '1', 'PX', String(ms));
    if (!(await this.has('paused'))) await this.place.dq('PAUSE', 'FOR', String(ms));
  }

  async freeRate(): Promise<number> {
    const removed = Number(await this.place.call('DEL', this.place.of('limiter')));
    if (removed && !(await this.has('paused'))) await this.place.dq('RESUME');
    return removed;
  }

  /** How long the queue is paused by a rate limit, in ms; -2 if it is not. */
  async rateTtl(): Promise<number> {
    return Number(await this.place.call('PTTL', this.place.of('limiter')));
  }

  async isMaxed(): Promise<boolean> {
    const info = shaped<{ maxrunning: number; running: number }>(await this.place.dq('INFO'));
    return Number(info.maxrunning) > 0 && Number(info.running) >= Number(info.maxrunning);
  }

  /** How many jobs have ended since the queue was made. The figures for each minute are the monitoring's. */
  async metrics(type: 'completed' | 'failed'): Promise<[string[], string[], number]> {
    const info = shaped<{ acked: number; deaths: number }>(await this.place.dq('INFO'));
    return [[String(type === 'completed' ? info.acked : info.deaths), '0', '0'], [], 0];
  }

  async clients(): Promise<string[]> {
    return [text(await this.place.call('CLIENT', 'LIST'))];
  }

  async trimEvents(most: number): Promise<number> {
    return Number(await this.place.call('XTRIM', this.place.of('events'), 'MAXLEN', '~', String(most)));
  }
}
