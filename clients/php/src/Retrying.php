<?php

declare(strict_types=1);

namespace Dq;

/** Commands that are repeated until they are answered. Only for those that may be run twice. */
final class Retrying
{
    /**
     * Runs a command, and repeats it after errors that may pass, for `patience` ms.
     *
     * @param list<string|int> $words
     * @param int|\Closure(): int $patience as `run` takes it
     * @param bool $waits whether the server may hold the reply back
     */
    public static function call(Client $client, string $key, array $words, int|\Closure $patience, bool $waits = false): mixed
    {
        return self::run(static fn (): mixed => $client->call($key, $words, $waits), $patience);
    }

    /**
     * Repeats one command until its reply has come or the patience is over.
     *
     * The time counts from the first error. A command that waits, or whose reply never comes, may have taken longer than
     * the patience by then, and is to be repeated all the same.
     *
     * @param int|\Closure(): int $patience a function is asked at each error, because the patience may change
     */
    public static function run(\Closure $command, int|\Closure $patience): mixed
    {
        $reply = self::outcome($command, $patience);
        return $reply instanceof Error ? throw $reply : $reply;
    }

    /** Does what `run` does. Returns the error that `run` would throw. */
    private static function outcome(\Closure $command, int|\Closure $patience): mixed
    {
        for ($tries = 0; ; $tries++) {
            $reply = self::attempt($command);
            if (!$reply instanceof Error) {
                return $reply;
            }
            $began ??= microtime(true);
            $pause = self::pause($tries);
            $left = $began + ($patience instanceof \Closure ? $patience() : $patience) / 1000 - microtime(true);
            if (!$reply->isTransient() || $pause > $left) {
                return $reply;
            }
            usleep((int) ($pause * 1e6));
        }
    }

    /**
     * Runs a function that runs one command, once. Returns its reply, or the error that it has thrown.
     *
     * Signals are held until the error is caught: PHP forgets those that it would handle while an error is on its way.
     */
    public static function attempt(\Closure $command): mixed
    {
        $isHeld = Signals::hold();
        try {
            return $command();
        } catch (Error $error) {
            return $error;
        } finally {
            Signals::release($isHeld);
        }
    }

    /**
     * Renews leases (ms) that may end soon, where a fetch was first sent at that time (`microtime`): a fetch that is repeated
     * gives the messages of a lost reply, whose leases began then. Their handlers run all the same if the server refuses.
     *
     * @param int|\Closure(): int $patience as `run` takes it
     */
    public static function renewLate(float $asked, int $lease, \Closure $touch, int|\Closure $patience = 0): void
    {
        if (microtime(true) - $asked > $lease / 3000) {
            self::outcome($touch, $patience);
        }
    }

    /** Returns the seconds to wait after that many tries. They double up to 1 s and are partly random. */
    public static function pause(int $tries): float
    {
        return min(0.02 * 2 ** min($tries, 10), 1.0) * (0.5 + 0.5 * mt_rand() / mt_getrandmax());
    }
}
