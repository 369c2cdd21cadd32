<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Tests\Server;
use Illuminate\Queue\InteractsWithQueue;

/** A job that deletes itself before its work, so that it never runs twice. It notes how many jobs are running then. */
class Deletes
{
    use InteractsWithQueue;

    public function handle(): void
    {
        $this->delete();
        Note::$seen[] = 'running: ' . Server::redis(4)->rawCommand('DQ.LEN', 'app_dq:default', 'running');
    }
}
