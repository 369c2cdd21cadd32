<?php

declare(strict_types=1);

namespace Dq;

/** The object that a handler of a Worker gets beside its message. */
final class Context
{
    private ?int $cost = null;

    /** @param int $lease ms by which `note` extends the lease of the message */
    public function __construct(private Queue $queue, private Message $message, private int $lease)
    {
    }

    /** Keeps a text with the message for its next attempt, and extends its lease. Returns false if the lease was lost. */
    public function note(string $text): bool
    {
        return $this->queue->touch($this->lease, $this->message, ['note' => $text]) === 1;
    }

    /** Sets the real cost of the message for its limits. It is acked with that, but not if a Follow is returned. */
    public function cost(int $cost): void
    {
        $this->cost = $cost;
    }

    /** Returns the cost that was set by `cost`. */
    public function booked(): ?int
    {
        return $this->cost;
    }
}
