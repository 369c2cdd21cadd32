<?php

declare(strict_types=1);

namespace Dq;

/** Signals that arrive while a command runs. */
final class Signals
{
    /**
     * Runs a command of a Redis library. The handlers of signals are called when it has ended.
     *
     * PHP calls a handler when the function that was interrupted returns. If that function throws, as it does when the
     * connection is lost, the handler is not called at all, and the signal is gone. A worker would never learn of its
     * SIGTERM then.
     */
    public static function hold(\Closure $command): mixed
    {
        if (!function_exists('pcntl_async_signals') || !pcntl_async_signals()) {
            return $command();
        }
        pcntl_async_signals(false);
        try {
            return $command();
        } finally {
            pcntl_async_signals(true);
            pcntl_signal_dispatch();
        }
    }
}
