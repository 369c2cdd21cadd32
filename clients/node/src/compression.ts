/** Payloads that are compressed by zstd, alike in all languages. */

import * as zlib from 'node:zlib';
import { Reject } from './errors.js';
import { bytesOf, Coding, type Fields, texts } from './middleware.js';
import type { Payload } from './words.js';

/** The header that says how a payload is compressed. */
const ENCODING = 'dq-encoding';

/** The functions that compress. Node has them since 22.15. */
export interface Zstd {
  compress(payload: Buffer): Uint8Array;
  /** Throws if the result would have more than `most` bytes, or if the payload is not whole. */
  decompress(payload: Buffer, most: number): Uint8Array;
}

/** The settings of Compression. */
export interface CompressionOptions {
  /** Payloads of at least so many bytes are compressed, if that makes them smaller. The default is 1,024. */
  above?: number;
  /** A payload that would have more bytes is rejected: a small message could fill the memory. The default is 64 MiB. */
  most?: number;
  /** Another zstd than that of Node. */
  zstd?: Zstd;
}

/** A middleware that compresses payloads. */
export class Compression extends Coding {
  readonly #above: number;
  readonly #most: number;
  readonly #zstd: Zstd;

  constructor({ above = 1024, most = 64 * 2 ** 20, zstd = ofNode() }: CompressionOptions = {}) {
    super();
    this.#above = above;
    this.#most = most;
    this.#zstd = zstd;
  }

  seal(_queue: string, _id: string, payload: Payload, headers: Fields = {}): [Buffer, Record<string, string>] {
    const plain = bytesOf(payload);
    const packed = plain.length >= this.#above ? bytesOf(this.#zstd.compress(plain)) : plain;
    return packed.length < plain.length ? [packed, { ...texts(headers), [ENCODING]: 'zstd' }] : [plain, texts(headers)];
  }

  open(_queue: string, _id: string, payload: Buffer, headers: Fields): [Buffer, Record<string, string>] {
    const { [ENCODING]: encoding, ...rest } = texts(headers);
    if (encoding === undefined) return [payload, rest];
    if (encoding !== 'zstd') throw new RangeError(`the encoding ${JSON.stringify(encoding)} is not known`);
    try {
      return [bytesOf(this.#zstd.decompress(payload, this.#most)), rest];
    } catch (error) {
      throw new Reject(`the payload is not what zstd has compressed, or has more than ${this.#most} bytes`, { cause: error });
    }
  }
}

/** The functions of Node, whose types are newer than the oldest Node that is supported. */
function ofNode(): Zstd {
  const { zstdCompressSync: pack, zstdDecompressSync: unpack } = zlib as unknown as {
    zstdCompressSync?: (payload: Buffer) => Buffer;
    zstdDecompressSync: (payload: Buffer, options: object) => Buffer;
  };
  if (!pack) throw new Error('this Node has no zstd, which is there since 22.15: give Compression one as `zstd`');
  return { compress: (payload) => pack(payload), decompress: (payload, most) => unpack(payload, { maxOutputLength: most }) };
}
