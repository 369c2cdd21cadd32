/**
 * The values that handlers throw: anything at all, also things that throw when they are looked at. Nothing here throws.
 */

import { inspect, types } from 'node:util';

/** Returns whether a value is of a class. A proxy may refuse even this question. */
export function isA<T>(value: unknown, Kind: abstract new (...words: never[]) => T): value is T {
  try {
    return value instanceof Kind;
  } catch {
    return false;
  }
}

/** Returns the message of an error, or another value as text. */
export function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const message = isError(thrown) ? partOf(thrown, 'message') : undefined;
  return message ?? shown(thrown);
}

/** Returns an error as `name: message`, and another value as text. */
export function textOf(thrown: unknown): string {
  const name = isError(thrown) ? partOf(thrown, 'name') : undefined;
  return name ? `${name}: ${messageOf(thrown)}` : messageOf(thrown);
}

function isError(value: unknown): value is Error {
  return types.isNativeError(value) || isA(value, Error);
}

/** Returns a property if it is a text. Its getter may throw. */
function partOf(thrown: Error, part: 'name' | 'message'): string | undefined {
  try {
    const text: unknown = thrown[part];
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Calls nothing of the value's own: no getter, no toString and no trap of a proxy. */
function shown(value: unknown): string {
  try {
    return inspect(value, { depth: 2, breakLength: Infinity, customInspect: false, getters: false });
  } catch {
    return `a value of type ${typeof value} that cannot be shown`;
  }
}
