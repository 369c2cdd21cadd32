/** The methods of a queue that only look, and those that search. */

import type { Batch, Child, Consumer, Explanation, Group, Info, Limit, Record, Schedule } from './records.js';
import { list, maybeShaped, maybeText, shaped, text } from './replies.js';
import { type Conditions, options, type State, type Word } from './words.js';

/** The end of a message: its state, and its result or error. */
export interface Ended {
  state: 'finished' | 'dead' | 'cancelled';
  result: string | null;
}

/** The base of Queue. */
export abstract class Inspection {
  /** The key of the queue. */
  abstract readonly key: string;

  protected abstract call(verb: string, words?: readonly Word[]): Promise<unknown>;
  protected abstract callBlocking(verb: string, words: readonly Word[], block: number): Promise<unknown>;

  /** DQ.GET: all about a message, or null. */
  async get(id: string): Promise<Record | null> {
    return maybeShaped<Record>(await this.call('GET', [id]));
  }

  /**
   * DQ.LIST: goes over the messages of a state, `count` in each call. A message that moves within the state meanwhile
   * (`touch`, `reschedule`) may come twice or not at all.
   */
  list(state: State, given: { group?: string; type?: string; rev?: boolean; count?: number } = {}): AsyncGenerator<Record> {
    return this.#pages<Record>('LIST', [state], options(given));
  }

  /** DQ.FIND: goes over the messages of a state to which all conditions apply. */
  find(state: State, given: Conditions & { count?: number } = {}): AsyncGenerator<Record> {
    return this.#pages<Record>('FIND', [state], options(given));
  }

  /** DQ.FIND DO REDRIVE: the dead messages to which all conditions apply are pending again. Returns how many. */
  redriveFound(given: Conditions & { count?: number } = {}): Promise<number> {
    return this.#changeFound('REDRIVE', 'dead', given);
  }

  /** DQ.FIND DO CANCEL: cancels the messages of a state to which all conditions apply. Returns how many. */
  cancelFound(state: State, given: Conditions & { count?: number } = {}): Promise<number> {
    return this.#changeFound('CANCEL', state, given);
  }

  /** DQ.FIND DO PURGE: removes the messages of a state to which all conditions apply. Returns how many. */
  purgeFound(state: State, given: Conditions & { count?: number } = {}): Promise<number> {
    return this.#changeFound('PURGE', state, given);
  }

  /** Each step is one entry in the log. */
  async #changeFound(what: string, state: State, given: Conditions & { count?: number }): Promise<number> {
    let changed = 0;
    for await (const [, count] of this.#steps('FIND', [state], [...options(given), 'DO', what])) changed += Number(count);
    return changed;
  }

  /** DQ.PEEK: the messages that a fetch would return next. */
  async peek(count = 1): Promise<Record[]> {
    return list(await this.call('PEEK', ['COUNT', String(count)])).map((one) => shaped<Record>(one));
  }

  /** DQ.LEN: the number of pending and running messages, or of those in one state. */
  async len(state?: State): Promise<number> {
    return Number(await this.call('LEN', state ? [state] : []));
  }

  /** DQ.INFO: counts, options and figures of the queue. */
  async info(): Promise<Info> {
    return shaped<Info>(await this.call('INFO'));
  }

  /** DQ.GROUPS: goes over the groups. */
  groups(given: { state?: 'ready' | 'running' | 'blocked' | 'paused' | 'held'; count?: number } = {}): AsyncGenerator<Group> {
    return this.#pages<Group>('GROUPS', [], options(given));
  }

  /** DQ.BATCHES: goes over the open batches. */
  batches(given: { count?: number } = {}): AsyncGenerator<Batch> {
    return this.#pages<Batch>('BATCHES', [], options(given));
  }

  /** DQ.CHILDREN: goes over the children of a message, and their states. */
  children(id: string, given: { count?: number } = {}): AsyncGenerator<Child> {
    return this.#pages<Child>('CHILDREN', [id], options(given));
  }

  /** DQ.LIMITS: goes over the limits with names, and each name of which something is used. */
  limits(given: { count?: number } = {}): AsyncGenerator<Limit> {
    return this.#pages<Limit>('LIMITS', [], options(given));
  }

  /** DQ.CONSUMERS. */
  async consumers(): Promise<Consumer[]> {
    return list(await this.call('CONSUMERS')).map((one) => shaped<Consumer>(one));
  }

  /** DQ.SCHEDULES. */
  async schedules(): Promise<Schedule[]> {
    return list(await this.call('SCHEDULES')).map((one) => shaped<Schedule>(one));
  }

  /** DQ.EXPLAIN: why a message is in its state, or null if it is unknown. */
  async explain(id: string): Promise<Explanation | null> {
    return maybeShaped<Explanation>(await this.call('EXPLAIN', [id]));
  }

  /** DQ.WAIT: waits up to `ms` (0: for ever) until a message has ended, on a connection of its own. Null if it has not. */
  async wait(id: string, ms: number): Promise<Ended | null> {
    const reply = await this.callBlocking('WAIT', [this.key, id, String(ms)], ms);
    if (reply === null) return null;
    const [state, result] = list(reply);
    return { state: text(state) as Ended['state'], result: maybeText(result) };
  }

  async *#steps(verb: string, first: Word[], rest: Word[]): AsyncGenerator<unknown[]> {
    let cursor = '0';
    do {
      const reply = list(await this.call(verb, [...first, ...(cursor === '0' ? [] : ['CURSOR', cursor]), ...rest]));
      cursor = text(reply[0]);
      yield reply;
    } while (cursor !== '0');
  }

  async *#pages<T>(verb: string, first: Word[], rest: Word[]): AsyncGenerator<T> {
    for await (const [, page] of this.#steps(verb, first, rest)) for (const one of list(page)) yield shaped<T>(one);
  }
}
