/** Effects: what an acknowledgement does to other Redis keys, in one step (APPLY). */

import { list, maybeText } from './replies.js';
import { options, type Payload, type Word, word } from './words.js';

type Value = Payload | number | bigint;

/**
 * Changes of Redis keys that go with an acknowledgement: all are done together with it, or none is.
 *
 * Nothing is written if the lease was lost. Use it as the option `apply` of `ack`, `ackSend` and `fetch`, or as
 * `message.effects` in a handler, whose worker then acks with it. A method adds one effect or condition and returns the
 * object itself:
 *
 *     await queue.ack(message, { apply: new Effects().incrby('paid', 5).hset('order:7', 'state', 'paid').ifExists('order:7') });
 *
 * The server checks everything first. Its errors begin with the code (`CONDITION 1`, `WRONGTYPE 2`, `NOPERM 1`), and then
 * nothing has changed. `keyPrefix` of ioredis is put before each key.
 */
export class Effects {
  readonly #effects: [verb: string, key: string, ...more: Word[]][] = [];
  readonly #conditions: [verb: string, key: string, ...more: Word[]][] = [];
  /** The replies of the plain commands, after the call; null if the lease was lost. Strings are text. */
  applied: unknown[] | null = null;

  /** Whether there is neither an effect nor a condition. */
  get isEmpty(): boolean {
    return !this.#effects.length && !this.#conditions.length;
  }

  #add(verb: string, key: string, ...more: Value[]): this {
    this.#effects.push([verb, key, ...more.map(word)]);
    return this;
  }

  #if(verb: string, key: string, ...more: Value[]): this {
    this.#conditions.push([verb, key, ...more.map(word)]);
    return this;
  }

  /** SET, with `px` for this many ms. */
  set(key: string, value: Value, { px }: { px?: number } = {}): this {
    return this.#add('SET', key, value, ...options({ px }));
  }

  /** DEL. */
  delete(key: string): this {
    return this.#add('DEL', key);
  }

  /** INCRBY. */
  incrby(key: string, by: number | bigint = 1): this {
    return this.#add('INCRBY', key, by);
  }

  /** HSET of one field. */
  hset(key: string, field: string, value: Value): this {
    return this.#add('HSET', key, field, value);
  }

  /** HDEL of one field. */
  hdel(key: string, field: string): this {
    return this.#add('HDEL', key, field);
  }

  /** HINCRBY. */
  hincrby(key: string, field: string, by: number | bigint = 1): this {
    return this.#add('HINCRBY', key, field, by);
  }

  /** SADD of one member. */
  sadd(key: string, member: Value): this {
    return this.#add('SADD', key, member);
  }

  /** SREM of one member. */
  srem(key: string, member: Value): this {
    return this.#add('SREM', key, member);
  }

  /** ZADD of one member. */
  zadd(key: string, score: number, member: Value): this {
    return this.#add('ZADD', key, score, member);
  }

  /** ZINCRBY. */
  zincrby(key: string, by: number, member: Value): this {
    return this.#add('ZINCRBY', key, by, member);
  }

  /** ZREM of one member. */
  zrem(key: string, member: Value): this {
    return this.#add('ZREM', key, member);
  }

  /** LPUSH of one element. */
  lpush(key: string, value: Value): this {
    return this.#add('LPUSH', key, value);
  }

  /** RPUSH of one element. */
  rpush(key: string, value: Value): this {
    return this.#add('RPUSH', key, value);
  }

  /** XADD of an entry, whose id the server gives. `maxlen` trims the stream to that many entries. */
  xadd(key: string, fields: Readonly<Record<string, Value>>, { maxlen }: { maxlen?: number } = {}): this {
    const pairs = Object.entries(fields);
    return this.#add('XADD', key, pairs.length, ...pairs.flat(), ...options({ maxlen }));
  }

  /** PEXPIRE, in ms. */
  pexpire(key: string, ms: number): this {
    return this.#add('PEXPIRE', key, ms);
  }

  /** Only if there is such a key. */
  ifExists(key: string): this {
    return this.#if('EXISTS', key);
  }

  /** Only if there is no such key. */
  ifMissing(key: string): this {
    return this.#if('MISSING', key);
  }

  /** Only if the key holds this string. */
  ifEquals(key: string, value: Value): this {
    return this.#if('EQUALS', key, value);
  }

  /** Forgets all effects and conditions. */
  clear(): this {
    this.#effects.length = 0;
    this.#conditions.length = 0;
    return this;
  }

  /** Returns it as words of DQ.ACK, DQ.ACKSEND and DQ.FETCH. `prefix` is what the client puts before each key. */
  words(prefix = ''): Word[] {
    const all = [['APPLY', this.#effects] as const, ['IF', this.#conditions] as const].filter(([, parts]) => parts.length);
    return all.flatMap(([option, parts]) => [
      option,
      String(parts.length),
      ...parts.flatMap(([verb, key, ...more]): Word[] => [verb, prefix + key, ...more]),
    ]);
  }

  /** Keeps the replies of the plain commands. Returns whether the lease was current. */
  read(reply: unknown): boolean {
    this.applied = reply === null ? null : list(reply).map((one) => (Buffer.isBuffer(one) ? maybeText(one) : one));
    return reply !== null;
  }
}

/** The words of effects, if there are any. */
export function effectWords(apply: Effects | undefined, prefix: string): Word[] {
  return apply?.words(prefix) ?? [];
}
