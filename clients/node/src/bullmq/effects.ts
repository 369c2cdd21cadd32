/** The effects of jobs: what they change in the same step as their end. */

import type { MinimalJob } from 'bullmq';

import { Effects } from '../effects.js';
import { Place } from './place.js';

const collected = new WeakMap<object, Effects>();

/**
 * Returns the effects of a job that runs: changes of Redis keys that are done together with its completion.
 *
 * All are done or none is: nothing if the job fails, is delayed or waits for children, or if its lock is lost. If the server
 * refuses them, the job has failed. Throws TypeError for a job of another backend, and in a sandboxed processor, whose job
 * is a copy.
 */
export function effects<T, R, N extends string>(job: Pick<MinimalJob<T, R, N>, 'id'>): Effects {
  const { backend } = job as { backend?: { place?: unknown } };
  if (!(backend?.place instanceof Place)) throw new TypeError('only a job of a worker with dq as its backend has effects, and only in the process of that worker');
  let all = collected.get(job);
  if (!all) collected.set(job, (all = new Effects()));
  return all;
}

/** Returns the effects of a job that has some. */
export function effectsOf(job: object): Effects | undefined {
  const all = collected.get(job);
  return all?.isEmpty ? undefined : all;
}
