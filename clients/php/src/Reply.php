<?php

declare(strict_types=1);

namespace Dq;

use function count;
use function is_array;
use function is_string;

/** Replies under RESP2, where a map is a flat list of names and values. */
final class Reply
{
    /**
     * Returns the reply of MFETCH: a key, and its messages.
     *
     * @return array{string, mixed}
     */
    public static function pair(mixed $reply): array
    {
        [$key, $messages] = (is_array($reply) ? $reply : []) + [null, null];
        if (!is_string($key) || !is_array($messages) || $messages === []) {
            throw new ConnectionError('the connection was lost in the middle of a reply');
        }
        return [$key, $messages];
    }

    /**
     * Returns a map, under the names of the command reference ("due-at").
     *
     * @return array<string, mixed>
     */
    public static function map(array $flat): array
    {
        if (!array_is_list($flat)) {
            return $flat;
        }
        $map = [];
        for ($n = 0, $end = count($flat) - 1; $n < $end; $n += 2) {
            $map[$flat[$n]] = $flat[$n + 1];
        }
        return $map;
    }

    /**
     * Returns the map of a message (DQ.GET, WITHMETA): the headers and each failed attempt are maps too, the score is a
     * number, `rerun` a boolean.
     *
     * @return array<string, mixed>
     */
    public static function record(array $flat): array
    {
        $record = self::map($flat);
        foreach (['headers', 'after', 'children', 'parent'] as $field) {
            if (is_array($record[$field] ?? null)) {
                $record[$field] = self::map($record[$field]);
            }
        }
        if (isset($record['errors'])) {
            $names = ['attempt', 'at', 'consumer', 'text'];
            $record['errors'] = array_map(fn (array $one) => array_combine($names, $one), $record['errors']);
        }
        if (isset($record['rerun'])) {
            $record['rerun'] = (bool) $record['rerun'];
        }
        if (isset($record['score'])) {
            $record['score'] = (float) $record['score'];
        }
        return $record;
    }

    /**
     * Returns the map of a limit: its rates are maps of `limit`, `per` and `used`.
     *
     * @return array<string, mixed>
     */
    public static function limit(array $flat): array
    {
        $limit = self::map($flat);
        $limit['rates'] = array_map(static fn (array $one): array => array_combine(['limit', 'per', 'used'], $one), $limit['rates']);
        return $limit;
    }
}
