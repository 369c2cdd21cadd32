<?php

declare(strict_types=1);

namespace Dq;

/** Signals that arrive while a command runs. */
final class Signals
{
    /**
     * Runs a command of a Redis library. The handlers of signals are called when it has ended.
     *
     * While an error is on its way to whoever catches it, PHP calls no handlers, and a signal that comes then is gone. A
     * worker would never learn of its SIGTERM. So whoever catches the error does that in here, too: `Retrying::attempt`.
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
