/** The JSON texts of jobs in the form that a coding gives them: encrypted, compressed. */

import type { Coding, Fields } from '../middleware.js';

/** The field of an envelope that has what was sealed, in base64. Beside it are the headers of the coding. */
const SEALED = 'dq-sealed';

export class Envelope {
  constructor(readonly coding: Coding) {}

  /** Writes a JSON text as the JSON text of an envelope. `id` is authenticated with it. */
  async seal(queue: string, id: string, json: string): Promise<string> {
    const [payload, fields] = await this.coding.seal(queue, id, json);
    // What is small is not compressed.
    if (!Object.keys(fields).length && !parts(json)) return json;
    return JSON.stringify({ ...fields, [SEALED]: payload.toString('base64') });
  }

  /** Reads the JSON text of an envelope. Throws what the coding throws. */
  async open(queue: string, id: string, json: string): Promise<string> {
    const [payload] = await this.coding.open(queue, id, ...(parts(json) ?? [Buffer.from(json), {}]));
    return payload.toString();
  }

  /** The same, but a text that cannot be read stays what it is. */
  seen(queue: string, id: string, json: string): Promise<string> {
    return this.open(queue, id, json).catch(() => json);
  }
}

function parts(json: string): [Buffer, Fields] | undefined {
  if (!json.includes(`"${SEALED}"`)) return undefined;
  const { [SEALED]: sealed, ...fields } = JSON.parse(json) as Record<string, string>;
  return sealed === undefined ? undefined : [Buffer.from(sealed, 'base64'), fields];
}
