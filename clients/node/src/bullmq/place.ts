/** The place of a queue of BullMQ: its keys, and the way in which commands get there. */

import type { Server } from '../adapter.js';
import { call } from '../connection.js';
import { translated } from '../errors.js';
import { list } from '../replies.js';
import type { Word } from '../words.js';
import type { Bound } from './bound.js';
import { ProcessClock } from './clock.js';

/** The most commands of one step. */
export const MOST_STEPS = 500;

/**
 * Runs several commands in one step. Each is given as the number of its words, then the words. A DQ.SEND with `?` in front
 * is done only if there is no message of its id, and no record of one: for BullMQ, an id is taken as long as its job is kept.
 * With a state before that, such as `dead?DQ.SEND`, it is done only if there is one in that state.
 */
const STEPS = `
local replies, at = {}, 1
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  local words = {unpack(ARGV, at + 1, last)}
  local state, verb = string.match(words[1], '^(%l*)%?(.*)$')
  if verb then
    words[1] = verb
    local message, is = redis.call('DQ.GET', words[2], words[5]) or {}, ''
    for field = 1, #message, 2 do if message[field] == 'state' then is = message[field + 1] end end
    if is ~= state then words = nil end
  end
  replies[#replies + 1] = words and redis.call(unpack(words)) or false
  at = last + 1
end
return replies`;

/** One queue. Its key is what BullMQ calls the qualified name, and everything else that belongs to it begins with that. */
export class Place {
  readonly key: string;
  /** Only in tests with a time of their own. */
  readonly clock: ProcessClock | undefined;

  constructor(
    readonly server: Server,
    readonly prefix: string,
    readonly name: string,
    readonly timed = false,
    /** Only for a worker, which may stop while the server is silent. */
    readonly bound?: Bound,
  ) {
    this.key = `${prefix}:${name}`;
    if (timed) this.clock = new ProcessClock((to) => call(server, ['DQ.TICK', this.key, 'TO', String(to)], this.key));
  }

  /** The place of another queue at the same server. */
  sibling(prefix: string | undefined, name: string): Place {
    return new Place(this.server, prefix || this.prefix, name, this.timed);
  }

  /** A further key of the queue, or the name of a job for BullMQ. */
  of(what: string): string {
    return `${this.key}:${what}`;
  }

  /** Sends any command to the server of the queue. Throws CommandError or ConnectionError. */
  call(...words: Word[]): Promise<unknown> {
    return this.#send(words);
  }

  #send(words: readonly Word[]): Promise<unknown> {
    if (words[0] === 'EVAL' || (words[0]?.toString().startsWith('DQ.') && words[0] !== 'DQ.CREATE')) this.clock?.sync();
    const send = () => call(this.server, words, this.key);
    return this.bound ? this.bound.reply(send) : send();
  }

  /** Sends a command of dq about the queue. */
  dq(verb: string, ...words: Word[]): Promise<unknown> {
    return this.call(`DQ.${verb}`, this.key, ...words);
  }

  /** Runs commands in one step: nothing happens between them. The first that fails ends it. */
  async together(commands: readonly (readonly Word[])[], keys: readonly string[] = [this.key]): Promise<unknown[]> {
    if (!commands.length) return [];
    const words = commands.flatMap((one) => [String(one.length), ...one]);
    return list(await this.#send(['EVAL', STEPS, String(keys.length), ...keys].concat(words as string[])));
  }
}

/** Sends a command to the server of another queue's key. */
export async function callAt(server: Server, key: string, ...words: Word[]): Promise<unknown> {
  try {
    return await server.send(words, key);
  } catch (error) {
    throw translated(error);
  }
}
