<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Reply;
use Dq\ServerError;

/** How many jobs a queue has, which Laravel's commands ask for: `queue:monitor`, `queue:work`, health pages. */
trait Counts
{
    abstract public function on(?string $queue): \Dq\Queue;

    /** Returns the number of jobs: waiting, delayed and running. */
    public function size($queue = null): int
    {
        return $this->on($queue)->len();
    }

    /** Returns the number of jobs that could run now. */
    public function pendingSize($queue = null): int
    {
        return $this->states($queue, 'ready', 'blocked');
    }

    /** Returns the number of jobs whose time has not come. */
    public function delayedSize($queue = null): int
    {
        return $this->states($queue, 'delayed', 'retry');
    }

    /** Returns the number of jobs that workers have. */
    public function reservedSize($queue = null): int
    {
        return $this->on($queue)->len('running');
    }

    /** Returns when (Unix seconds) the job was sent that has been ready for the longest time, or null. */
    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        [, $oldest] = $this->on($queue)->do('LIST', 'ready', 'COUNT', 1);
        return $oldest === [] ? null : intdiv((int) Reply::map($oldest[0])['sent-at'], 1000);
    }

    private function states(?string $queue, string ...$states): int
    {
        $info = Reply::map($this->infoOf($queue));
        return array_sum(array_map(static fn ($state) => (int) ($info[$state] ?? 0), $states));
    }

    private function infoOf(?string $queue): array
    {
        try {
            return $this->on($queue)->do('INFO');
        } catch (ServerError $error) {
            if (str_contains($error->getMessage(), 'no such queue')) {
                return [];
            }
            throw $error;
        }
    }
}
