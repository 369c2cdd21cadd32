import type { SendOneOptions } from '../words.js';

/** Data with options of its message: `client.emit('remind', new DqRecord(data, { delay: 60_000, group: 'ann' }))`. */
export class DqRecord<T = unknown> {
  constructor(
    readonly data: T,
    readonly options: Omit<SendOneOptions, 'type'> = {},
  ) {}
}
