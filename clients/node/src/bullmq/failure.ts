/** Errors with the codes and words that BullMQ's own backends use, which applications look for. */

const WORDS: Record<number, (job: string, state: string) => string> = {
  [-1]: (job) => `Missing key for job ${job}.`,
  [-2]: (job) => `Missing lock for job ${job}.`,
  [-3]: (job, state) => `Job ${job} is not in the ${state} state.`,
  [-4]: (job) => `Job ${job} has pending dependencies.`,
  [-5]: (job) => `Missing key for parent job ${job}.`,
  [-6]: (job) => `Lock mismatch for job ${job}.`,
  [-7]: (job) => `The parent job ${job} cannot be replaced.`,
  [-8]: (job) => `Job ${job} belongs to a job scheduler and cannot be removed directly.`,
  [-9]: (job) => `Cannot complete job ${job} because it has at least one failed child.`,
  [-10]: () => 'Cannot create job scheduler iteration - job ID already exists.',
  [-11]: () => 'Cannot create job scheduler iteration - current and next time slots already have jobs.',
};

/** The codes, named by their meaning. */
export const MISSING = -1;
export const NO_LOCK = -2;
export const NOT_IN_STATE = -3;
export const PENDING_CHILDREN = -4;
export const NO_PARENT = -5;
export const OTHER_LOCK = -6;
export const OTHER_PARENT = -7;
export const OF_SCHEDULER = -8;
export const FAILED_CHILDREN = -9;
export const SCHEDULER_TAKEN = -10;
export const SCHEDULER_BUSY = -11;

/** Makes the error of a code. `command` is BullMQ's name of the operation. */
export function failure(code: number, job: string, command: string, state = 'active'): Error {
  const words = WORDS[code]!(job, state);
  const message = code === OTHER_LOCK ? `${words} Cmd ${command} from ${state}` : `${words} ${command}`;
  return Object.assign(new Error(message), { code });
}

/** Makes the error of a method for which the server has no counterpart. The page about BullMQ lists these. */
export function lacking(what: string): Error {
  return new Error(`dq: ${what} (see docs/drivers/bullmq.md)`);
}
