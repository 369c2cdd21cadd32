<?php

declare(strict_types=1);

namespace Dq;

/** One delivery of a message. */
final class Message
{
    /**
     * @param string $key the queue that it came from
     * @param int $receipt names this delivery. It grows with every delivery of the queue, so it serves as a fencing
     *     token: let the place that your handler writes to refuse a smaller one than it has seen
     * @param int $attempt counts from 1
     * @param array<string, mixed> $meta group, score, priority, type, headers, sent-at, due-at, lease-until, retries-left
     */
    public function __construct(
        public readonly string $key,
        public readonly string $id,
        public readonly int $receipt,
        public readonly int $attempt,
        public readonly string $payload,
        public readonly array $meta = [],
    ) {
    }

    /** Reads an element of the reply of FETCH or MFETCH. */
    public static function read(string $key, array $element): self
    {
        [$id, $receipt, $attempt, $payload] = $element;
        return new self($key, $id, (int) $receipt, (int) $attempt, $payload, Reply::record($element[4] ?? []));
    }

    public function type(): ?string
    {
        return $this->meta['type'] ?? null;
    }

    public function group(): ?string
    {
        return $this->meta['group'] ?? null;
    }

    /** @return array<string, string> */
    public function headers(): array
    {
        return $this->meta['headers'] ?? [];
    }

    /** Returns the payload read as JSON, objects as arrays. Throws a JsonException if it is none. */
    public function json(): mixed
    {
        return json_decode($this->payload, true, 512, JSON_THROW_ON_ERROR);
    }
}
