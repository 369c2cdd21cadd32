<?php

declare(strict_types=1);

namespace Dq;

use function array_key_exists;
use function count;
use function is_array;
use function is_int;
use function is_string;

/** One delivery of a message. */
final class Message
{
    private ?Effects $effects = null;

    /**
     * @param string $queue the key of the queue that it came from
     * @param int $receipt names this delivery. It grows with every delivery of the queue, so it serves as a fencing
     *     token: let the place that your handler writes to refuse a smaller one than it has seen
     * @param int $attempt counts from 1
     * @param array<string, mixed> $meta group, score, priority, type, headers, sent-at, due-at, lease-until, retries-left,
     *     note, signal, batch, after
     */
    public function __construct(
        public readonly string $queue,
        public readonly string $id,
        public readonly int $receipt,
        public readonly int $attempt,
        public readonly string $payload,
        public readonly array $meta = [],
    ) {
    }

    /**
     * Reads the messages in the reply of FETCH.
     *
     * @param bool $hasMeta whether WITHMETA was asked for
     * @return list<self>
     */
    public static function all(string $key, mixed $reply, bool $hasMeta = false): array
    {
        if (!is_array($reply)) {
            throw self::cut();
        }
        return array_map(static fn (mixed $element): self => self::read($key, $element, $hasMeta), $reply);
    }

    /**
     * Reads an element of the reply of FETCH or MFETCH. phpredis does not tell of a connection that is lost in the middle
     * of a reply: it gives what has come. So what is missing is a lost connection, and the delivery can be asked for again.
     */
    public static function read(string $key, mixed $element, bool $hasMeta = false): self
    {
        if (!is_array($element) || count($element) < ($hasMeta ? 5 : 4)) {
            throw self::cut();
        }
        [$id, $receipt, $attempt, $payload] = $element;
        if (!is_string($id) || !is_int($receipt) || !is_int($attempt) || !is_string($payload)) {
            throw self::cut();
        }
        $meta = $element[4] ?? null;
        $meta = Reply::record(is_array($meta) ? $meta : []);
        if ($hasMeta && !array_key_exists('after', $meta)) {
            throw self::cut();
        }
        return new self($key, $id, $receipt, $attempt, $payload, $meta);
    }

    private static function cut(): ConnectionError
    {
        return new ConnectionError('the connection was lost in the middle of a reply');
    }

    public function type(): ?string
    {
        return $this->meta['type'] ?? null;
    }

    public function group(): ?string
    {
        return $this->meta['group'] ?? null;
    }

    /** Returns the note that an earlier attempt has left with the message. */
    public function note(): ?string
    {
        return $this->meta['note'] ?? null;
    }

    /** Returns the text of the last signal to the message, or null if none has come, or its wait for one has ended. */
    public function signal(): ?string
    {
        return $this->meta['signal'] ?? null;
    }

    /** @return array<string, string> */
    public function headers(): array
    {
        return $this->meta['headers'] ?? [];
    }

    /** Changes of Redis keys that the worker does together with its ack of this message. A handler adds to them. */
    public function effects(): Effects
    {
        return $this->effects ??= new Effects();
    }

    /** Returns the effects of a handler that has added some. */
    public function collected(): ?Effects
    {
        return Effects::in(['apply' => $this->effects]);
    }

    /** Returns the message with another payload and other headers. Both have the same effects. */
    public function with(string $payload, array $headers): self
    {
        $other = new self($this->queue, $this->id, $this->receipt, $this->attempt, $payload, ['headers' => $headers] + $this->meta);
        $other->effects = $this->effects();
        return $other;
    }

    /** Returns the payload read as JSON, objects as arrays. Throws a JsonException if it is none. */
    public function json(): mixed
    {
        return json_decode($this->payload, true, 512, JSON_THROW_ON_ERROR);
    }
}
