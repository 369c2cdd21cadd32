<?php

declare(strict_types=1);

namespace Dq;

use function function_exists;
use function pcntl_async_signals;
use function pcntl_signal_dispatch;

/**
 * Signals that arrive while a command of a Redis library runs. Their handlers are called when the command has ended:
 *
 *     $isHeld = Signals::hold();
 *     try { ... } finally { Signals::release($isHeld); }
 *
 * While an error is on its way to whoever catches it, PHP calls no handlers, and a signal that comes then is gone. A worker
 * would never learn of its SIGTERM. So whoever catches the error does that in such a block, too: `Retrying::attempt`.
 */
final class Signals
{
    /** Holds signals from now on. Returns false if they are held already, or if nobody handles them at once. */
    public static function hold(): bool
    {
        if (!function_exists('pcntl_async_signals') || !pcntl_async_signals()) {
            return false;
        }
        pcntl_async_signals(false);
        return true;
    }

    /** Calls the handlers of the signals that have come, if `hold` has returned true. */
    public static function release(bool $isHeld): void
    {
        if ($isHeld) {
            pcntl_async_signals(true);
            pcntl_signal_dispatch();
        }
    }
}
