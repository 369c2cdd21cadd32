/** Readers of replies. They read RESP2 and RESP3 alike, and strings that the library has decoded or not. */

import type { FailedAttempt } from './records.js';

/** Reads a string of the server as text. */
export function text(reply: unknown): string {
  return Buffer.isBuffer(reply) ? reply.toString() : String(reply);
}

/** Reads a string of the server as text, or null. */
export function maybeText(reply: unknown): string | null {
  return reply === null || reply === undefined ? null : text(reply);
}

/** Reads a string of the server as bytes. */
export function bytes(reply: unknown): Buffer {
  return Buffer.isBuffer(reply) ? reply : Buffer.from(String(reply));
}

/** Reads an array. Null gives an empty one. */
export function list(reply: unknown): unknown[] {
  return reply === null || reply === undefined ? [] : (reply as unknown[]);
}

/** Reads a map, which is a flat array under RESP2. */
export function pairs(reply: unknown): [string, unknown][] {
  if (reply instanceof Map) return [...reply].map(([name, value]) => [text(name), value]);
  if (!Array.isArray(reply)) return Object.entries(reply as object);
  const found: [string, unknown][] = [];
  for (let at = 0; at < reply.length; at += 2) found.push([text(reply[at]), reply[at + 1]]);
  return found;
}

/** Reads a map of texts. */
export function texts(reply: unknown): Record<string, string> {
  return Object.fromEntries(pairs(reply).map(([name, value]) => [name, text(value)]));
}

/** Reads the list `errors` of a message. In DQ.INFO it is the option of that name, a number. */
function failedAttempts(reply: unknown): FailedAttempt[] | unknown {
  if (!Array.isArray(reply)) return reply;
  return reply.map((one) => {
    const [attempt, at, consumer, words] = list(one);
    return { attempt: Number(attempt), at: Number(at), consumer: maybeText(consumer), text: text(words) };
  });
}

/** Reads the list `rates` of a limit. */
function windows(reply: unknown): unknown {
  return list(reply).map((one) => {
    const [limit, per, used] = list(one).map(Number);
    return { limit, per, used };
  });
}

const camel = new Map<string, string>();

/** `first-started-at` becomes `firstStartedAt`. */
function camelCase(name: string): string {
  let known = camel.get(name);
  if (known === undefined) {
    known = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    camel.set(name, known);
  }
  return known;
}

/** Fields that are not read by the type that they have on the wire. */
const READERS: Record<string, (value: unknown) => unknown> = {
  payload: bytes,
  headers: texts,
  score: Number,
  after: shaped,
  children: shaped,
  parent: shaped,
  paused: Boolean,
  errors: failedAttempts,
  limits: (reply) => (Array.isArray(reply) ? reply.map(text) : reply),
  rates: windows,
  rerun: Boolean,
};

/** Reads a map as an object, whose fields have the names of the command reference in camel case. */
export function shaped<T>(reply: unknown): T {
  const object: Record<string, unknown> = {};
  for (const [name, value] of pairs(reply)) {
    const read = value === null ? undefined : READERS[name];
    object[camelCase(name)] = read ? read(value) : Buffer.isBuffer(value) ? value.toString() : value;
  }
  return object as T;
}

/** Reads a map as an object, or null. */
export function maybeShaped<T>(reply: unknown): T | null {
  return reply === null || reply === undefined ? null : shaped<T>(reply);
}
