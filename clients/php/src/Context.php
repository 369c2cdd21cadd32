<?php

declare(strict_types=1);

namespace Dq;

/** What a handler of a Worker is given beside its message. */
final class Context
{
    private ?int $cost = null;

    /** @param \Closure(string): bool $note */
    public function __construct(private \Closure $note)
    {
    }

    /** Keeps a text with the message for its next attempt, and extends its lease. Returns false if the lease was lost. */
    public function note(string $text): bool
    {
        return ($this->note)($text);
    }

    /** Says what the message has really taken of its limits. It is acked with that, but not if a Follow is returned. */
    public function cost(int $cost): void
    {
        $this->cost = $cost;
    }

    /** Returns what `cost` was told. */
    public function booked(): ?int
    {
        return $this->cost;
    }
}
