import { BaseRpcContext } from '@nestjs/microservices';

import type { Effects } from '../effects.js';
import type { Context } from '../handling.js';
import type { Message } from '../message.js';

/** The object that a handler gets with `@Ctx()`. */
export class DqContext extends BaseRpcContext<[message: Message, context: Context]> {
  /** The message: id, attempt, receipt, group, headers and so on. */
  getMessage(): Message {
    return this.args[0];
  }

  /** Aborted when the lease is lost, the time limit is over, or the worker stops and `grace` is over. */
  getSignal(): AbortSignal {
    return this.args[1].signal;
  }

  /** Keeps a text with the message for its next attempt, and renews its lease. Returns whether the lease was on. */
  note(text: string): Promise<boolean> {
    return this.args[1].note(text);
  }

  /** Sets the real cost of the message for its limits. It is acked with that. */
  cost(cost: number): void {
    this.args[1].cost(cost);
  }

  /**
   * Changes of Redis keys that are done together with the ack of the message, all or none: nothing if the handler throws, or if
   * the lease is over. If the server refuses them, the message has failed.
   */
  effects(): Effects {
    return this.getMessage().effects;
  }

  /** The metadata that the client's dispatch hook has attached. They are the headers of the message. */
  getMetadata(): Readonly<Record<string, string>> {
    return this.getMessage().headers;
  }
}
