/** A flow may name a job that is there already as a child. */

import type { JobJson } from 'bullmq';

import type { Word } from '../words.js';
import { OTHER_PARENT, failure } from './failure.js';
import { jobSeen, seen, sentAnew } from './job.js';
import { lateKey } from './late.js';
import { type Place, callAt } from './place.js';

/**
 * Makes an existing job a child of a parent that waits for it. If the job has ended, the parent waits for one child
 * less.
 */
export async function adopt(place: Place, id: string, job: JobJson): Promise<void> {
  const { queueKey: key, id: parentId = '' } = job.parent!;
  const found = seen(await place.dq('GET', id));
  if (!found) return;
  const known = jobSeen(found);
  const parentKey = `${key}:${parentId}`;
  if (known.parentKey === parentKey && found.state !== 'finished') return;
  const commands: Word[][] = [['SADD', lateKey(parentKey), `${place.key}\n${id}`]];
  if (found.state === 'finished') {
    const parent = seen(await callAt(place.server, key, 'DQ.GET', key, parentId));
    if (parent?.children) commands.push(sentAnew(key, parent, jobSeen(parent), { children: parent.children.total - 1 }));
  } else if (known.parentKey === undefined && found.state !== 'running' && found.state !== 'dead') {
    commands.push(sentAnew(place.key, found, { ...known, parent: job.parent, parentKey }));
  } else {
    throw failure(OTHER_PARENT, parentKey, 'addJob');
  }
  await place.together(commands, [place.key, key, lateKey(parentKey)]);
}
