<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Illuminate\Queue\InteractsWithQueue;

/** A job that always throws. */
class Fails
{
    use InteractsWithQueue;

    public function handle(): void
    {
        throw new \RuntimeException("attempt {$this->job->attempts()}");
    }
}
