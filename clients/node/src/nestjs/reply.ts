/** The form in which the answer to a request is kept as the result of its message. */
export interface Reply {
  /** The values that the handler has given: one, or those of its stream. */
  values?: unknown[];
  /** The error that the handler has thrown. */
  err?: unknown;
}
