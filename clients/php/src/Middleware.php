<?php

declare(strict_types=1);

namespace Dq;

/**
 * The code that runs around `send` and around the handlers of workers: encryption, compression, traces, logs. The first
 * one of a queue is the outermost. Both methods call `$next` once, and return what it returns.
 */
interface Middleware
{
    /** @param \Closure(): ?string $next */
    public function send(Sending $sending, \Closure $next): ?string;

    /**
     * An error that `$next` throws is the failure of the message, also Retry, Reject, Snooze and Park.
     *
     * @param \Closure(Message): mixed $next
     */
    public function handle(Message $message, Context $context, \Closure $next): mixed;
}
