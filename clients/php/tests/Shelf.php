<?php

declare(strict_types=1);

namespace Dq\Tests;

use Dq\Store;

/** A store of payloads. */
final class Shelf implements Store
{
    /** @param array<string, string> $kept */
    public function __construct(public array $kept = [])
    {
    }

    public function get(string $key): ?string
    {
        return $this->kept[$key] ?? null;
    }

    public function put(string $key, string $payload): void
    {
        $this->kept[$key] = $payload;
    }

    public function delete(string $key): void
    {
        unset($this->kept[$key]);
    }
}
