/** How the answer to a request is kept as the result of its message. */
export interface Reply {
  /** What the handler has given: one value, or those of its stream. */
  values?: unknown[];
  /** What it has thrown. */
  err?: unknown;
}
