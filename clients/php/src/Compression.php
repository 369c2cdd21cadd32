<?php

declare(strict_types=1);

namespace Dq;

use function is_string;
use function strlen;

/**
 * Compresses payloads by zstd, alike in all languages (docs/secrets.md). It needs the extension zstd (PECL).
 *
 *     $queue = new Queue($client, 'mails', middleware: [new Compression()]);
 */
final class Compression extends Coding
{
    /** The header that says how a payload is compressed. */
    private const ENCODING = 'dq-encoding';

    /**
     * @param int $above payloads of at least so many bytes are compressed, if that makes them smaller
     * @param int $most a payload that would have more bytes is rejected: a small message could fill the memory of a worker.
     *     A frame that does not tell its size is rejected, too
     */
    public function __construct(private int $above = 1024, private int $most = 64 << 20, private int $level = 3)
    {
    }

    public function seal(string $queue, string $id, string $payload, array $headers = []): array
    {
        $packed = strlen($payload) >= $this->above ? zstd_compress($payload, $this->level) : $payload;
        $isSmaller = is_string($packed) && strlen($packed) < strlen($payload);
        return $isSmaller ? [$packed, [self::ENCODING => 'zstd'] + $headers] : [$payload, $headers];
    }

    public function open(string $queue, string $id, string $payload, array $headers): array
    {
        $encoding = $headers[self::ENCODING] ?? null;
        unset($headers[self::ENCODING]);
        if ($encoding === null) {
            return [$payload, $headers];
        }
        if ($encoding !== 'zstd') {
            throw new \OutOfBoundsException("the encoding \"$encoding\" is not known");
        }
        $size = self::size($payload);
        $plain = $size === null || $size > $this->most ? false : @zstd_uncompress($payload);
        return is_string($plain) && strlen($plain) === $size
            ? [$plain, $headers]
            : throw new Reject("the payload is not what zstd has compressed, or has more than {$this->most} bytes");
    }

    /** Reads the size of the content from the header of a frame, which the extension does not look at (RFC 8878, 3.1.1.1). */
    private static function size(string $frame): ?int
    {
        if (strlen($frame) < 6 || !str_starts_with($frame, "\x28\xB5\x2F\xFD")) {
            return null;
        }
        $descriptor = ord($frame[4]);
        $isSingle = ($descriptor >> 5 & 1) === 1;
        $place = 5 + ($isSingle ? 0 : 1) + [0, 1, 2, 4][$descriptor & 3];
        [$bytes, $format] = [[$isSingle ? 1 : 0, 'C'], [2, 'v'], [4, 'V'], [8, 'P']][$descriptor >> 6];
        $field = substr($frame, $place, $bytes);
        return $bytes === 0 || strlen($field) < $bytes ? null : unpack($format, $field)[1] + ($bytes === 2 ? 256 : 0);
    }
}
