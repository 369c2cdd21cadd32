/**
 * Finds the queue of a family to which a group belongs: pure functions, which every client of dq computes alike.
 *
 * docs/families.md explains the rule. tests/conformance/routing.json has examples for every language.
 */

import { crc32 } from 'node:zlib';

/** The number of hash slots of a Redis Cluster, and the largest number of partitions. */
export const SLOTS = 16_384;

/** CRC-16 (XMODEM) of each byte. */
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** Returns the hash slot of a text, regardless of braces. */
function hash(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) crc = ((crc << 8) ^ CRC16[(crc >> 8) ^ byte]!) & 0xffff;
  return crc % SLOTS;
}

/** Returns the hash slot of a key. If it has braces, only the text between the first ones counts. */
export function slot(key: string): number {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  return hash(open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key);
}

const known = new Map<number, readonly number[]>();

/** Returns the tag of each partition: the smallest integer whose slot lies in the slots of the partition. */
export function tags(partitions: number): readonly number[] {
  let found = known.get(partitions);
  if (!found) {
    found = search(partitions);
    known.set(partitions, found);
  }
  return found;
}

function search(partitions: number): number[] {
  if (!Number.isInteger(Math.log2(partitions)) || partitions > SLOTS || partitions < 1) {
    throw new RangeError(`partitions must be a power of two from 1 to ${SLOTS}, not ${partitions}`);
  }
  const size = SLOTS / partitions;
  const found: number[] = [];
  for (let tag = 0, missing = partitions; missing > 0; tag++) {
    const partition = Math.floor(hash(String(tag)) / size);
    if (found[partition] === undefined) {
      found[partition] = tag;
      missing--;
    }
  }
  return found;
}

/** Returns the number of the partition that a group belongs to. */
export function partition(partitions: number, group: string | Uint8Array): number {
  return Math.floor((crc32(group) * partitions) / 2 ** 32);
}

/** Returns the name of the queue that a group belongs to, as DQ.ROUTE does. */
export function route(family: string, partitions: number, group: string | Uint8Array): string {
  return `${family}:{${tags(partitions)[partition(partitions, group)]}}`;
}

/** Returns the names of all queues of a family, in the order of the partitions, as DQ.PARTITIONS does. */
export function queues(family: string, partitions: number): string[] {
  return tags(partitions).map((tag) => `${family}:{${tag}}`);
}
