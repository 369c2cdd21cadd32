<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Illuminate\Queue\InteractsWithQueue;

/** A job that ends its process. */
class Ends
{
    use InteractsWithQueue;

    public int $tries = 0;

    public function __construct(private string $how)
    {
    }

    public function handle(): void
    {
        echo $this->job->attempts();
        match ($this->how) {
            'exit' => exit(3),
            'memory' => str_repeat('x', 500_000_000),
            'killed' => posix_kill(getmypid(), SIGKILL),
        };
    }
}
