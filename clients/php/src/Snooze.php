<?php

declare(strict_types=1);

namespace Dq;

/**
 * Thrown by a handler to give its message back without blame: no attempt and no failure is counted.
 *
 * The message comes again after `delay` ms, or at once without it. `pauseGroup` and `pauseQueue` (ms) pause its group or the
 * queue in the same step, as a "429, Retry-After" asks for.
 */
class Snooze extends \RuntimeException
{
    public function __construct(
        string $error = '',
        public readonly int|\DateInterval|null $delay = null,
        public readonly int|\DateInterval|null $pauseGroup = null,
        public readonly int|\DateInterval|null $pauseQueue = null,
    ) {
        parent::__construct($error);
    }
}
