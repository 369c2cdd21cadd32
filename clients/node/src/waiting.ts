/** Connections for calls that wait at the server. */

import type { ServerNode } from './adapter.js';
import { Connection } from './connection.js';
import type { Word } from './words.js';

/**
 * Separate connections to nodes, each used by one call at a time.
 *
 * A call gets an idle connection, or a new one while there are fewer than `most` to its node. Otherwise it stands in
 * line for the next that is free.
 */
export class WaitingConnections {
  readonly #nodes = new Map<string, { idle: Connection[]; made: number; line: ((connection?: Connection) => void)[] }>();
  #closed = false;

  constructor(private readonly most: number) {}

  async call(node: ServerNode, words: readonly Word[], block: number): Promise<unknown> {
    const connection = await this.#take(node);
    try {
      return await connection.call(words, block);
    } finally {
      this.#give(node, connection);
    }
  }

  /** Closes all connections. Calls that wait fail. */
  close(): void {
    this.#closed = true;
    for (const place of this.#nodes.values()) for (const connection of place.idle.splice(0)) connection.close();
  }

  #place(node: ServerNode) {
    let place = this.#nodes.get(node.name);
    if (!place) this.#nodes.set(node.name, (place = { idle: [], made: 0, line: [] }));
    return place;
  }

  async #take(node: ServerNode): Promise<Connection> {
    const place = this.#place(node);
    const idle = place.idle.pop();
    if (idle) return idle;
    if (place.made >= this.most) {
      const freed = await new Promise<Connection | undefined>((resolve) => place.line.push(resolve));
      if (freed) return freed;
    }
    place.made++;
    try {
      return await Connection.to(node);
    } catch (error) {
      this.#lost(node);
      throw error;
    }
  }

  #give(node: ServerNode, connection: Connection): void {
    const place = this.#place(node);
    if (this.#closed) connection.close();
    if (!connection.usable) return this.#lost(node);
    const next = place.line.shift();
    if (next) next(connection);
    else place.idle.push(connection);
  }

  /** Lets the next waiting call make a connection instead of a lost one. */
  #lost(node: ServerNode): void {
    const place = this.#place(node);
    place.made--;
    place.line.shift()?.();
  }
}
