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
     */
    public static function call(Client $client, string $key, array $words, int $patience): mixed
    {
        $deadline = microtime(true) + $patience / 1000;
        for ($tries = 0; ; $tries++) {
            try {
                return $client->call($key, $words);
            } catch (Error $error) {
                $pause = self::pause($tries);
                if (!$error->isTransient() || microtime(true) + $pause > $deadline) {
                    throw $error;
                }
            }
            usleep((int) ($pause * 1e6));
        }
    }

    /** Returns the seconds to wait after that many tries. They double up to 2 s and are partly random. */
    public static function pause(int $tries): float
    {
        return min(0.02 * 2 ** min($tries, 10), 2.0) * (0.5 + 0.5 * mt_rand() / mt_getrandmax());
    }
}
