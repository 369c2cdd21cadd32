<?php

declare(strict_types=1);

namespace Dq;

/**
 * Gives up messages that kill their workers. Where RETRIES is a limit, the server counts lost workers as it counts other
 * failures. This is for messages without limit, such as those of frameworks that count attempts by themselves.
 */
final class LostWorkers
{
    /** After this number of lost workers a message is given up. */
    public const MOST = 3;

    /** @param int $most 0: a message is never given up */
    public function __construct(private int $most = self::MOST)
    {
    }

    /**
     * Returns why a message is to be given up, or null. It asks the server only for a message that was delivered so often
     * that it may be one.
     */
    public function verdict(Queue $queue, Message $message): ?string
    {
        if ($this->most <= 0 || $message->attempt <= $this->most) {
            return null;
        }
        $timeouts = (int) ($queue->get($message->id)['timeouts'] ?? 0);
        return $timeouts >= $this->most ? "given up: $timeouts workers were lost with it" : null;
    }
}
