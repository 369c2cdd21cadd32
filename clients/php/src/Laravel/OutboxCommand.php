<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Console\Command;

/** `php artisan dq:outbox`: sends what the outbox has until SIGTERM or SIGINT, and ends with 0 then. */
final class OutboxCommand extends Command
{
    protected $signature = 'dq:outbox {connection? : The queue connection, the default one if it is not given}';
    protected $description = 'Send the jobs of the outbox of a dq connection';

    public function handle(): int
    {
        $queue = $this->laravel['queue']->connection($this->argument('connection'));
        $outbox = $queue instanceof DqQueue ? $queue->outbox() : null;
        if ($outbox === null) {
            $this->error('The queue connection is no dq connection with the option outbox.');
            return self::INVALID;
        }
        $outbox->run();
        return self::SUCCESS;
    }
}
