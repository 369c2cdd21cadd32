/** Payloads and headers that only the programs with a key can read: AES-256-GCM, alike in all languages. */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Reject } from './errors.js';
import { bytesOf, Coding, type Fields, texts } from './middleware.js';
import type { Payload } from './words.js';

/** The header that names the key of a message. */
const KEY = 'dq-key';
/** It comes before the names of headers that are encrypted. */
const SEALED = 'dq-sealed:';
const CIPHER = 'aes-256-gcm';
const NONCE = 12;
const TAG = 16;

/** The settings of Secrets. */
export interface SecretsOptions {
  /** The headers that are encrypted with the payload. */
  headers?: readonly string[];
  /** The keys of other queues that messages may have been sent to before (DEADTO). */
  queues?: readonly string[];
  /** Whether messages without a key are accepted, too. */
  plain?: boolean;
}

/**
 * A middleware that encrypts the payloads of messages and some of their headers.
 *
 * `keys` are 32 bytes each by their ids. The first one encrypts, and all of them decrypt. The queue and the id of a message
 * are authenticated, so it must have been sent to the queue that it comes from.
 */
export class Secrets extends Coding {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #key: string;
  readonly #options: SecretsOptions;

  constructor(keys: ReadonlyMap<string, Buffer> | Readonly<Record<string, Buffer>>, options: SecretsOptions = {}) {
    super();
    this.#keys = keys instanceof Map ? keys : new Map(Object.entries(keys));
    const [first] = this.#keys.keys();
    if (first === undefined || [...this.#keys.values()].some((key) => key.length !== 32)) {
      throw new RangeError('Secrets needs at least one key, and each has 32 bytes');
    }
    this.#key = first;
    this.#options = options;
  }

  /** Encrypts the payload and the headers of a message of this queue and id. */
  seal(queue: string, id: string, payload: Payload, headers: Fields = {}): [Buffer, Record<string, string>] {
    const sealed: Record<string, string> = { [KEY]: this.#key };
    for (const [name, value] of Object.entries(headers)) {
      if (this.#options.headers?.includes(name)) {
        sealed[SEALED + name] = this.#encrypt(queue, id, `header:${name}`, String(value)).toString('base64');
      } else {
        sealed[name] = String(value);
      }
    }
    return [this.#encrypt(queue, id, 'payload', payload), sealed];
  }

  /**
   * Returns the payload and the headers of a message as they were. Throws Reject if this is not what was sent with this id to
   * one of the queues, and a RangeError for an unknown key.
   */
  open(queue: string, id: string, payload: Buffer, headers: Fields): [Buffer, Record<string, string>] {
    const { [KEY]: name, ...rest } = headers;
    const fields = texts(rest);
    if (name === undefined) {
      if (this.#options.plain) return [payload, fields];
      throw new Reject('the message is not encrypted');
    }
    const key = this.#keys.get(String(name));
    if (!key) throw new RangeError(`there is no key ${JSON.stringify(name)}`);
    for (const one of [queue, ...(this.#options.queues ?? [])]) {
      try {
        const opened = decrypt(key, one, id, 'payload', payload);
        const plain: Record<string, string> = {};
        for (const [field, value] of Object.entries(fields)) {
          if (!field.startsWith(SEALED)) plain[field] ??= value;
          else {
            const bare = field.slice(SEALED.length);
            plain[bare] = decrypt(key, one, id, `header:${bare}`, Buffer.from(value, 'base64')).toString();
          }
        }
        return [opened, plain];
      } catch {
        // It was sent to another queue.
      }
    }
    throw new Reject('the message is not what was sent with this id to this queue');
  }

  #encrypt(queue: string, id: string, part: string, text: Payload): Buffer {
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv(CIPHER, this.#keys.get(this.#key) as Buffer, nonce, { authTagLength: TAG });
    cipher.setAAD(associated(queue, id, part));
    const sealed = Buffer.concat([cipher.update(bytesOf(text)), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
  }
}

function decrypt(key: Buffer, queue: string, id: string, part: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE), { authTagLength: TAG });
  decipher.setAAD(associated(queue, id, part));
  decipher.setAuthTag(sealed.subarray(-TAG));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
}

/** Returns the data that is authenticated with a text: each part after its length. */
function associated(...parts: string[]): Buffer {
  return Buffer.concat(['dq1', ...parts].flatMap((part) => {
    const bytes = Buffer.from(part);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  }));
}
