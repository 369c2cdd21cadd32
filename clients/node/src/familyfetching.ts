/**
 * The way in which a worker fetches the messages of a family: one connection to each primary, and one waiting NFETCH on
 * it.
 *
 * A worker with room for one message that waits at six nodes may get six. It gives back those that it has no room for,
 * which counts no attempt, and does not ask again before there is room.
 */

import { setImmediate as turn } from 'node:timers/promises';

import { unless } from './bounds.js';
import type { ServerNode } from './adapter.js';
import { Connection } from './connection.js';
import { CommandError, isTransient, pauses } from './errors.js';
import type { Family } from './family.js';
import { common, type Crew, MOST, pauseFor } from './fetching.js';
import { Message } from './message.js';
import type { Jobs } from './queue.js';
import { list, text } from './replies.js';

/** Other nodes learn by gossip that slots have moved, within this many ms. */
const GOSSIP = 1000;

/** Fetches from all nodes until the worker stops. */
export async function fetchFromFamily<J extends Jobs>(family: Family<J>, crew: Crew): Promise<void> {
  const nodes = new Nodes(family.server, crew, (node) => fetchFromNode(family.name, node, nodes, crew));
  await nodes.look();
  while (!crew.stopping.aborted) {
    await nodes.change();
    // The nodes are asked now, and once more when all of them know of the change.
    await nodes.look();
    await pauseFor(GOSSIP, crew);
    await nodes.look();
  }
  await nodes.finish();
}

/** The present nodes, each with its loop. */
class Nodes {
  readonly #loops = new Map<string, Promise<void>>();
  #known = new Set<string>();
  #changed: () => void = () => {};
  #change = Promise.resolve();

  constructor(
    private readonly server: Family['server'],
    private readonly crew: Crew,
    private readonly loop: (node: ServerNode) => Promise<void>,
  ) {
    this.#expect();
    crew.stopping.addEventListener('abort', () => this.#changed(), { once: true });
  }

  /** How many loops share the room of the worker. */
  get count(): number {
    return Math.max(1, this.#loops.size);
  }

  has(node: ServerNode): boolean {
    return this.#known.has(node.name);
  }

  /** Notes that slots may have moved. */
  changed(): void {
    this.#changed();
  }

  /** Returns when slots may have moved, or when the worker stops. */
  change(): Promise<void> {
    return this.#change;
  }

  /** Asks the cluster for its nodes, and begins at the new ones. A node that is gone ends by itself. */
  async look(): Promise<void> {
    if (this.crew.stopping.aborted) return;
    this.#expect();
    try {
      const { cut } = this.crew;
      if (this.#known.size) await unless(cut, this.server.refresh());
      const nodes = await unless(cut, this.server.nodes());
      this.#known = new Set(nodes.map(({ name }) => name));
      for (const node of nodes) this.#begin(node);
    } catch (error) {
      this.crew.warn(error as Error);
      await pauseFor(GOSSIP, this.crew);
      this.changed();
    }
  }

  /** Returns when the loops have ended. */
  async finish(): Promise<void> {
    await Promise.all(this.#loops.values());
  }

  #begin(node: ServerNode): void {
    if (this.#loops.has(node.name)) return;
    const loop = this.loop(node)
      .catch((error: unknown) => this.crew.fail(error))
      .finally(() => this.#loops.delete(node.name));
    this.#loops.set(node.name, loop);
  }

  #expect(): void {
    this.#change = new Promise((resolve) => {
      this.#changed = resolve;
    });
    if (this.crew.stopping.aborted) this.#changed();
  }
}

/** Fetches from a node until the worker stops or the node is gone. Throws an error that will not pass. */
async function fetchFromNode(family: string, node: ServerNode, nodes: Nodes, crew: Crew): Promise<void> {
  const { handling, settling } = crew;
  let connection: Connection | undefined;
  let hot = false;
  const close = () => connection?.close();
  for (const signal of [crew.cut, crew.end]) signal.addEventListener('abort', close, { once: true });

  /**
   * Repeats a command until there is a reply, and once more without a wait if the worker stops: messages that a lost
   * reply has leased must be given back. Returns undefined if the node is gone or does not answer then.
   */
  async function insist(words: string[], block: number): Promise<unknown> {
    for (const pause of pauses()) {
      const last = crew.stopping.aborted;
      try {
        connection = connection?.usable ? connection : await Connection.to(node, last ? crew.end : crew.cut);
        return await connection.call(last || !block ? words : [...words, 'BLOCK', String(block)], last ? 0 : block);
      } catch (error) {
        if (!isTransient(error)) throw error;
        crew.warn(error as Error);
        if (error instanceof CommandError) connection?.close();
        nodes.changed();
        if (last) return undefined;
        await pauseFor(pause, crew);
        if (!nodes.has(node)) return undefined;
      }
    }
  }

  try {
    while (!crew.stopping.aborted) {
      await handling.waitForRoom();
      await turn();
      const { room } = handling;
      if (crew.stopping.aborted || room === 0) continue;
      // A node whose last reply was full has probably more, and no other node need be asked for this room.
      const count = Math.min(hot ? room : Math.max(1, Math.floor(room / nodes.count)), MOST);
      const release = hot ? handling.reserve(count) : () => {};
      const asked = performance.now();
      let reply: unknown;
      try {
        reply = await insist(['DQ.NFETCH', family, ...common(crew, count)] as string[], hot ? 0 : crew.block);
      } finally {
        release();
      }
      if (reply === undefined) break;
      if (reply === null) {
        // A wait ends early where slots have moved. At its regular end the nodes are looked at, too, because slots
        // may have moved while nobody waited here.
        if (!hot) nodes.changed();
        hot = false;
        continue;
      }
      const [queue, messages] = reply as [unknown, unknown];
      const batch = list(messages).map((one) => new Message(text(queue), one));
      hot = batch.length >= count;
      const taken = handling.room;
      handling.start(batch.slice(0, taken), asked);
      if (batch.length > taken) await settling.giveBack(batch.slice(taken));
    }
  } finally {
    for (const signal of [crew.cut, crew.end]) signal.removeEventListener('abort', close);
    close();
  }
}
