/**
 * Children that a job gets after it was added. dq is told how many children a message waits for when it is sent, so the
 * names of these are in a set beside the queue until the job waits for them.
 */

import type { JobJson } from 'bullmq';

import type { Word } from '../words.js';
import { FAILED_CHILDREN, MISSING, NO_PARENT, PENDING_CHILDREN, failure } from './failure.js';
import { jobSeen, payloadOf, seen, sendWords, sentAnew } from './job.js';
import { type Place, callAt } from './place.js';

/** How long the set is kept after the last child, in ms: as the rows of a log. */
const KEPT = String(7 * 86_400_000);

/** Jobs that have got children from this process, so that only the ends of these jobs are checked. */
const parents = new Set<string>();
const MOST_PARENTS = 10_000;

/**
 * Counts the children that have not ended. -1 stands for one whose death means that of its parent. With a receipt, the
 * job is sent anew and waits for them, as soon as its run has ended, which is now. The keys: the queue, the set. The
 * words: the receipt or nothing, then the words of DQ.SEND.
 */
const COUNTED = `
local function field(map, name)
  for at = 1, #map, 2 do if map[at] == name then return map[at + 1] end end
end
local open = 0
for _, child in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local at = string.find(child, '\\n', 1, true)
  local message = redis.call('DQ.GET', string.sub(child, 1, at - 1), string.sub(child, at + 1))
  local state = message and field(message, 'state') or 'finished'
  local parent = message and field(message, 'parent')
  local meaning = parent and string.upper(field(parent, 'ondead')) or 'HOLD'
  if state == 'dead' and meaning == 'DIE' then return -1 end
  if state ~= 'finished' and state ~= 'cancelled' and not (state == 'dead' and meaning == 'GO') then open = open + 1 end
end
if open > 0 and ARGV[1] ~= '' then
  local send = {'DQ.SEND', KEYS[1], unpack(ARGV, 2)}
  for _, word in ipairs({'REPLACE', 'RERUN', 'CHILDREN', open}) do send[#send + 1] = word end
  redis.call(unpack(send))
  redis.call('DQ.ACK', KEYS[1], ARGV[1])
end
return open`;

/** The key of the set of a job's children. */
export function lateKey(parentKey: string): string {
  return `${parentKey}:children`;
}

/**
 * The commands that make a message a child of an existing one. Throws what BullMQ throws if it is not. `parentKey` is
 * BullMQ's name of it.
 */
export async function joining(place: Place, child: string, job: JobJson, parentKey?: string): Promise<{ commands: Word[][]; keys: string[] }> {
  const { queueKey: key, id = '' } = job.parent!;
  const parent = seen(await callAt(place.server, key, 'DQ.GET', key, id));
  if (!parent) throw failure(NO_PARENT, parentKey ?? `${key}:${id}`, 'addJob');
  if (parent.state === 'cancelled') throw failure(MISSING, parentKey ?? `${key}:${id}`, 'addJob');
  const set = lateKey(`${key}:${id}`);
  parents.add(`${key}:${id}`);
  if (parents.size > MOST_PARENTS) parents.delete(parents.values().next().value!);
  const commands: Word[][] = [['SADD', set, `${place.key}\n${child}`], ['PEXPIRE', set, KEPT]];
  // The counts of its children stay.
  if (parent.state === 'held' && parent.children) {
    const json = jobSeen(parent);
    commands.unshift(sentAnew(key, parent, json, { children: parent.children.total + 1 }));
  }
  return { commands, keys: [key, set] };
}

/** The key of the hash with the results of the children that leave no record, by their queues and ids. */
export function resultsKey(parentKey: string): string {
  return `${parentKey}:results`;
}

export class Late {
  constructor(readonly place: Place) {}

  /** Keeps the result of a child whose record may be gone when its parent asks for it. */
  async keep(id: string, parentKey: string, result: string): Promise<void> {
    const key = resultsKey(parentKey);
    await this.place.together([['HSET', key, `${this.place.key}\n${id}`, result], ['PEXPIRE', key, KEPT]], [key]);
  }

  /** Throws BullMQ's error if children of a job that is about to be completed have not ended. */
  async check(id: string): Promise<void> {
    if (!parents.has(this.place.of(id))) return;
    const open = await this.#count(id, ['']);
    if (open < 0) throw Object.assign(failure(FAILED_CHILDREN, id, 'moveToFinished'), { name: 'UnrecoverableError' });
    if (open > 0) throw failure(PENDING_CHILDREN, id, 'moveToFinished');
    parents.delete(this.place.of(id));
  }

  /** Lets a job that runs wait for its children. Returns whether there are any to wait for. */
  async wait(id: string, receipt: string, child: { id?: string; queue: string } | undefined): Promise<boolean> {
    const found = seen(await this.place.dq('GET', id));
    if (!found) throw failure(MISSING, id, 'moveToWaitingChildren');
    if (child?.id !== undefined) {
      const one = seen(await callAt(this.place.server, child.queue, 'DQ.GET', child.queue, child.id));
      if (!one || one.state === 'finished' || one.state === 'cancelled') return false;
    }
    const job = jobSeen(found);
    const open = await this.#count(id, [receipt, payloadOf(job), 'ID', id, ...sendWords(job)]);
    if (open < 0) throw Object.assign(failure(FAILED_CHILDREN, id, 'moveToWaitingChildren'), { name: 'UnrecoverableError' });
    return open > 0;
  }

  async #count(id: string, words: readonly Word[]): Promise<number> {
    return Number(await this.place.call('EVAL', COUNTED, '2', this.place.key, lateKey(this.place.of(id)), ...words));
  }
}
