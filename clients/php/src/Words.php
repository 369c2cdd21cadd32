<?php

declare(strict_types=1);

namespace Dq;

use function count;
use function in_array;
use function is_array;
use function is_int;
use function is_string;

/**
 * Options of a command as its words.
 *
 * The names are those of the command reference in any case, and `_` is left out: `['max_bytes' => 5]` is MAXBYTES 5.
 * So an option that a newer server knows can be given at once, and the server refuses one that it does not know.
 *
 * | value | words |
 * |---|---|
 * | true | the name alone |
 * | false, null, an empty list | none |
 * | a text or number | the name and the value |
 * | a DateTimeInterface | the name and Unix ms |
 * | a DateInterval | the name and ms |
 * | a list | the name and each of them: `'backoff' => ['EXP', 1000]`, `'rate' => [5, 'PER', 1000]` |
 * | `headers`: field => value | HEADERS, how many, and each field and value |
 * | `ack`, `results`, `ids`, `limits`: a list | the name, how many, and each of them |
 * | `rates`: a list of `[1000, 'PER', 60_000]` | RATE for each of them |
 * | `park`: ms or a DateInterval | PARK FOR and ms |
 */
final class Words
{
    private const COUNTED = ['ACK', 'RESULTS', 'IDS', 'LIMITS'];

    /**
     * @param array<string, mixed> $options
     * @return list<string|int>
     */
    public static function of(array $options): array
    {
        $words = [];
        foreach ($options as $name => $value) {
            // The words of effects depend on the client.
            if ($value === null || $value === false || $value === [] || $value instanceof Effects) {
                continue;
            }
            $option = strtoupper(str_replace('_', '', $name));
            if ($option === 'RATES') {
                foreach ($value as $rate) {
                    array_push($words, ...self::of(['rate' => $rate]));
                }
                continue;
            }
            $values = match (true) {
                $value === true => [],
                $option === 'HEADERS' => self::headers($value),
                $option === 'PARK' => ['FOR', $value],
                in_array($option, self::COUNTED, true) => [count($value), ...array_values($value)],
                is_array($value) => array_values($value),
                default => [$value],
            };
            $words[] = $option;
            foreach ($values as $one) {
                $words[] = self::word($one);
            }
        }
        return $words;
    }

    public static function word(mixed $value): string|int
    {
        return match (true) {
            is_int($value), is_string($value) => $value,
            is_float($value) && abs($value) < 2 ** 53 && $value === floor($value) => (int) $value,
            // A cast to text would keep 14 digits only.
            is_float($value) => json_encode($value, JSON_THROW_ON_ERROR),
            $value instanceof \DateTimeInterface => self::instant($value),
            $value instanceof \DateInterval => self::span($value),
            $value instanceof Message => $value->receipt,
            $value instanceof \Stringable => (string) $value,
            default => throw new \InvalidArgumentException('not a text, number or time: ' . get_debug_type($value)),
        };
    }

    /** Returns a point in time in Unix ms. */
    public static function instant(\DateTimeInterface $time): int
    {
        return $time->getTimestamp() * 1000 + (int) $time->format('v');
    }

    /** Returns the length (ms) of an interval that begins now. */
    public static function span(\DateInterval $interval): int
    {
        $now = new \DateTimeImmutable();
        return self::instant($now->add($interval)) - self::instant($now);
    }

    /** @return list<string|int> */
    private static function headers(array $headers): array
    {
        $words = [count($headers)];
        foreach ($headers as $field => $value) {
            array_push($words, (string) $field, (string) $value);
        }
        return $words;
    }
}
