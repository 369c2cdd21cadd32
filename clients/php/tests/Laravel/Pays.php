<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Illuminate\Container\Container;
use Illuminate\Queue\InteractsWithQueue;

/** A job whose effects are a counter, and that ends in one of several ways. */
class Pays
{
    use InteractsWithQueue;

    public function __construct(public string $how)
    {
    }

    public function handle(): void
    {
        $effects = $this->job->effects()->incrby('paid', 5);
        match ($this->how) {
            'fails' => throw new \RuntimeException('no'),
            'is given up' => $this->fail(new \RuntimeException('never')),
            'is released' => $this->release(100),
            'is refused' => $effects->ifMissing('paid'),
            'is lost' => Container::getInstance()['queue']->connection()->on(null)->cancel($this->job->message()->id),
            'returns' => null,
        };
    }
}
