<?php

declare(strict_types=1);

namespace Bench;

/**
 * The work that every worker here does with a job, and the way in which every producer sends jobs. See python/job.py.
 */
final class Job
{
    private static int $first;
    private static int $last;
    private static int $sleep;
    private static bool $stamped;
    private static int $count = 0;
    /** @var list<int> */
    private static array $late = [];

    public static function setUp(): void
    {
        self::$first = self::setting('FIRST', 1);
        self::$last = self::setting('LAST');
        self::$sleep = self::setting('SLEEP_MS') * 1000;
        self::$stamped = self::setting('STAMPED') === 1;
    }

    public static function setting(string $name, int $otherwise = 0): int
    {
        $given = getenv("BENCH_$name");
        return $given === false ? $otherwise : (int) $given;
    }

    /** The handler of a job. */
    public static function handle(string $payload): void
    {
        self::arrived($payload);
        if (self::$sleep > 0) {
            usleep(self::$sleep);
        }
    }

    public static function arrived(string $payload): void
    {
        if (self::$stamped) {
            self::$late[] = self::now() - (int) $payload;
        }
        self::$count++;
        if (self::$count === self::$first) {
            self::tell('first');
        }
        if (self::$count === self::$last) {
            self::tell(implode(' ', ['last', ...self::$late]));
        }
    }

    /** @param callable(string, int): mixed $one gets the payload and the delay (ms) of each job that is to be sent */
    public static function send(callable $one): void
    {
        while (($line = fgets(STDIN)) !== false) {
            [$delay, $payload] = explode(' ', trim($line));
            $one($payload === '@' ? (string) (self::now() + (int) $delay * 1000) : $payload, (int) $delay);
        }
        self::tell('sent');
    }

    /** Returns the Unix time in microseconds. */
    private static function now(): int
    {
        return (int) (microtime(true) * 1e6);
    }

    private static function tell(string $line): void
    {
        fwrite(STDOUT, "$line\n");
    }
}

Job::setUp();
