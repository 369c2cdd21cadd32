<?php

declare(strict_types=1);

namespace Dq;

/** Several codings: what is sent goes through the first one first, and what comes through the last one first. */
final class Layers extends Coding
{
    /** @var list<Coding> */
    private array $codings;

    public function __construct(Coding ...$codings)
    {
        $this->codings = array_values($codings);
    }

    public function seal(string $queue, string $id, string $payload, array $headers = []): array
    {
        foreach ($this->codings as $one) {
            [$payload, $headers] = $one->seal($queue, $id, $payload, $headers);
        }
        return [$payload, $headers];
    }

    public function open(string $queue, string $id, string $payload, array $headers): array
    {
        foreach (array_reverse($this->codings) as $one) {
            [$payload, $headers] = $one->open($queue, $id, $payload, $headers);
        }
        return [$payload, $headers];
    }
}
