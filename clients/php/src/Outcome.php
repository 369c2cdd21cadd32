<?php

declare(strict_types=1);

namespace Dq;

/** The consequence of a handler's end for its message, in options of DQ.ACK and DQ.NACK. */
final class Outcome
{
    private const ERROR_LENGTH = 1000;

    /**
     * Converts the return value of a handler to the result of its message: a text as it is, anything else as JSON.
     *
     * @throws \JsonException if it has no JSON
     */
    public static function result(mixed $returned): ?string
    {
        return match (true) {
            $returned === null, $returned === '' => null,
            is_string($returned) => $returned,
            $returned instanceof \Stringable => (string) $returned,
            default => json_encode($returned, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE),
        };
    }

    /** Returns the options of the NACK for the exception that a handler has thrown. */
    public static function of(\Throwable $thrown): array
    {
        if ($thrown instanceof Park) {
            $waits = ['silent' => true, 'park' => $thrown->for ?? true, 'note' => $thrown->note];
            return $waits + self::failed($thrown->getMessage());
        }
        if ($thrown instanceof Snooze) {
            return self::failed($thrown->getMessage()) + ['silent' => true, 'delay' => $thrown->delay, 'pause' => match (true) {
                $thrown->pauseGroup !== null => ['GROUP', $thrown->pauseGroup],
                $thrown->pauseQueue !== null => ['QUEUE', $thrown->pauseQueue],
                default => null,
            }];
        }
        $isOurs = $thrown instanceof Reject || $thrown instanceof Retry;
        return self::failed($isOurs ? $thrown->getMessage() : $thrown::class . ': ' . $thrown->getMessage()) + [
            'delay' => $thrown instanceof Retry && $thrown->delay !== null ? max(0, Words::word($thrown->delay)) : null,
            'fatal' => $thrown instanceof Reject,
        ];
    }

    /** Returns the options of the NACK for an error of this text. */
    public static function failed(string $text): array
    {
        return ['error' => substr($text, 0, self::ERROR_LENGTH) ?: null];
    }
}
