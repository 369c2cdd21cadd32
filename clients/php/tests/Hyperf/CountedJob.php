<?php

declare(strict_types=1);

namespace Dq\Tests\Hyperf;

use Hyperf\AsyncQueue\JobInterface;

final class CountedJob implements JobInterface
{
    public function __construct(public string $name, private int $maxAttempts = 0, private bool $fails = false)
    {
    }

    public function handle()
    {
        if ($this->fails) {
            throw new \RuntimeException('no');
        }
    }

    public function getMaxAttempts(): int
    {
        return $this->maxAttempts;
    }

    public function fail(\Throwable $e): void
    {
    }
}
