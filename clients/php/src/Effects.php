<?php

declare(strict_types=1);

namespace Dq;

use function count;

/**
 * Changes of Redis keys that go with an acknowledgement (APPLY): all are done together with it, or none is.
 *
 * Nothing is written if the lease was lost. Use it as the option `apply` of `Queue::ack`, `ackSend` and `fetch`, or as
 * `$message->effects()` in a handler, whose worker then acks with it. A method adds one effect or condition and returns the
 * object itself:
 *
 *     $queue->ack($message, ['apply' => (new Effects())->incrby('paid', 5)->hset('order:7', 'state', 'paid')->ifExists('order:7')]);
 *
 * The server checks everything first. The kind of its ServerError says why not (CONDITION, WRONGTYPE, NOPERM), a number
 * behind it which one, and then nothing has changed. The prefix of the Redis client is put before each key.
 */
final class Effects
{
    /** @var ?list<mixed> the replies of the plain commands, after the call; null if the lease was lost */
    public ?array $applied = null;

    /** @var list<list<string|int>> each a verb, a key and more words */
    private array $effects = [];
    /** @var list<list<string|int>> */
    private array $conditions = [];

    /** Returns the effects that are an option, if they have any. */
    public static function in(array $options): ?self
    {
        return isset($options['apply']) && !$options['apply']->isEmpty() ? $options['apply'] : null;
    }

    private function add(mixed ...$words): self
    {
        $this->effects[] = array_map(Words::word(...), $words);
        return $this;
    }

    private function if(mixed ...$words): self
    {
        $this->conditions[] = array_map(Words::word(...), $words);
        return $this;
    }

    /** SET, with `px` for this long (ms). */
    public function set(string $key, string|int|float $value, int|\DateInterval|null $px = null): self
    {
        return $this->add('SET', $key, $value, ...($px === null ? [] : ['PX', $px]));
    }

    /** DEL. */
    public function delete(string $key): self
    {
        return $this->add('DEL', $key);
    }

    /** INCRBY. */
    public function incrby(string $key, int $by = 1): self
    {
        return $this->add('INCRBY', $key, $by);
    }

    /** HSET of one field. */
    public function hset(string $key, string $field, string|int|float $value): self
    {
        return $this->add('HSET', $key, $field, $value);
    }

    /** HDEL of one field. */
    public function hdel(string $key, string $field): self
    {
        return $this->add('HDEL', $key, $field);
    }

    /** HINCRBY. */
    public function hincrby(string $key, string $field, int $by = 1): self
    {
        return $this->add('HINCRBY', $key, $field, $by);
    }

    /** SADD of one member. */
    public function sadd(string $key, string|int|float $member): self
    {
        return $this->add('SADD', $key, $member);
    }

    /** SREM of one member. */
    public function srem(string $key, string|int|float $member): self
    {
        return $this->add('SREM', $key, $member);
    }

    /** ZADD of one member. */
    public function zadd(string $key, int|float $score, string|int|float $member): self
    {
        return $this->add('ZADD', $key, $score, $member);
    }

    /** ZINCRBY. */
    public function zincrby(string $key, int|float $by, string|int|float $member): self
    {
        return $this->add('ZINCRBY', $key, $by, $member);
    }

    /** ZREM of one member. */
    public function zrem(string $key, string|int|float $member): self
    {
        return $this->add('ZREM', $key, $member);
    }

    /** LPUSH of one element. */
    public function lpush(string $key, string|int|float $value): self
    {
        return $this->add('LPUSH', $key, $value);
    }

    /** RPUSH of one element. */
    public function rpush(string $key, string|int|float $value): self
    {
        return $this->add('RPUSH', $key, $value);
    }

    /**
     * XADD of an entry, whose id the server gives. `maxlen` trims the stream to that many entries.
     *
     * @param array<string, string|int|float> $fields
     */
    public function xadd(string $key, array $fields, ?int $maxlen = null): self
    {
        $words = [];
        foreach ($fields as $field => $value) {
            array_push($words, (string) $field, $value);
        }
        return $this->add('XADD', $key, count($fields), ...$words, ...($maxlen === null ? [] : ['MAXLEN', $maxlen]));
    }

    /** PEXPIRE, in ms. */
    public function pexpire(string $key, int|\DateInterval $span): self
    {
        return $this->add('PEXPIRE', $key, $span);
    }

    /** Only if there is such a key. */
    public function ifExists(string $key): self
    {
        return $this->if('EXISTS', $key);
    }

    /** Only if there is no such key. */
    public function ifMissing(string $key): self
    {
        return $this->if('MISSING', $key);
    }

    /** Only if the key holds this string. */
    public function ifEquals(string $key, string|int|float $value): self
    {
        return $this->if('EQUALS', $key, $value);
    }

    /** Returns whether there is neither an effect nor a condition. */
    public function isEmpty(): bool
    {
        return $this->effects === [] && $this->conditions === [];
    }

    /**
     * Returns it as words of DQ.ACK, DQ.ACKSEND and DQ.FETCH over a client.
     *
     * @return list<string|int>
     */
    public function words(Client $client): array
    {
        $words = [];
        foreach (['APPLY' => $this->effects, 'IF' => $this->conditions] as $option => $all) {
            if ($all !== []) {
                array_push($words, $option, count($all));
            }
            foreach ($all as $one) {
                $one[1] = $client instanceof PrefixingClient ? $client->prefixed($one[1]) : $one[1];
                array_push($words, ...$one);
            }
        }
        return $words;
    }

    /** Keeps the replies of the plain commands. Returns whether the lease was current. */
    public function keep(?array $reply): bool
    {
        // phpredis gives a null array as an empty one, and OK as true.
        $read = static fn (mixed $one): mixed => $one === true ? 'OK' : (is_object($one) ? (string) $one : $one);
        $this->applied = $reply ? array_map($read, $reply) : null;
        return $this->applied !== null;
    }

    /** Keeps the first part of a reply of FETCH or ACKSEND, and returns the other one. */
    public function rest(mixed $reply): mixed
    {
        [$applied, $rest] = (is_array($reply) ? $reply : []) + [null, null];
        $this->keep($applied);
        return $rest;
    }
}
