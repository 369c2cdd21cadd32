<?php

declare(strict_types=1);

namespace Dq;

/**
 * Thrown by a handler whose message has to wait for a signal (`Queue::signal`): an approval, the answer of a partner.
 *
 * No worker is bound meanwhile, and no attempt and no failure is counted. The next delivery has the text of the signal as
 * `$message->signal()`. `for` (ms, at least 1) bounds the wait: it is delivered then, and has no signal. `note` stays with
 * the message for that delivery.
 */
class Park extends \RuntimeException
{
    public function __construct(
        string $error = '',
        public readonly int|\DateInterval|null $for = null,
        public readonly ?string $note = null,
    ) {
        parent::__construct($error);
    }
}
