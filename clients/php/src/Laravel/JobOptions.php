<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Words;

/** The options that a job states for its message. */
trait JobOptions
{
    /** Returns when a job is due: a number of seconds counts on the server's clock, a point in time is one. */
    private function due($delay): array
    {
        return match (true) {
            $delay instanceof \DateInterval => ['delay' => max(0, Words::span($delay))],
            $delay instanceof \DateTimeInterface => ['at' => max(0, Words::instant($delay))],
            default => $delay > 0 ? ['delay' => (int) round($delay * 1000)] : [],
        };
    }

    /** Returns the group of a job: its `messageGroup`, a property or a method. Jobs of a group run in their order. */
    private function groupOf($job): ?string
    {
        if (!is_object($job)) {
            return null;
        }
        $group = method_exists($job, 'messageGroup') ? $job->messageGroup() : ($job->messageGroup ?? null);
        return $group === null || $group === '' ? null : (string) $group;
    }
}
