<?php

declare(strict_types=1);

namespace Dq;

/** The methods of a Queue for its schedules. */
trait Schedules
{
    /**
     * DQ.SCHEDULE: makes the server send the payload at times. Returns the first of them, in Unix ms.
     *
     * Options: cron and tz, or every and start; missed, overlap, until, times, jitter, and those of `send`.
     */
    public function schedule(string $name, string $payload, array $options): int
    {
        return $this->do('SCHEDULE', $name, ...Words::of($options), ...['PAYLOAD', $payload]);
    }

    /** DQ.UNSCHEDULE: removes a schedule. Returns whether it existed. */
    public function unschedule(string $name): bool
    {
        return $this->do('UNSCHEDULE', $name) === 1;
    }

    /** DQ.SCHEDULES PAUSE: stops a schedule until it is resumed. Returns whether it exists. */
    public function pauseSchedule(string $name): bool
    {
        return $this->do('SCHEDULES', 'PAUSE', $name) === 1;
    }

    /**
     * DQ.SCHEDULES RESUME: lets a schedule go on. The fires that it has missed are skipped. Returns whether it exists.
     */
    public function resumeSchedule(string $name): bool
    {
        return $this->do('SCHEDULES', 'RESUME', $name) === 1;
    }

    /**
     * DQ.SCHEDULES: returns all schedules.
     *
     * @return list<array<string, mixed>>
     */
    public function schedules(): array
    {
        return array_map(Reply::map(...), $this->do('SCHEDULES'));
    }
}
