/** A server for a test. */
export interface Server {
  /** The URL of the server: redis://127.0.0.1:PORT. */
  readonly url: string;
  /** Ends it. */
  stop(): Promise<void>;
}

/** Returns the path of the program dq. The variable DQ_CLI names another one. */
export function program(): string;

/**
 * Starts a server for a test: in memory, on a free port. It ends with this process, even if that is killed.
 * `options` are more options of `dq server`.
 */
export function startServer(options?: string[]): Promise<Server>;
