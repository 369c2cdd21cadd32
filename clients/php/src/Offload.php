<?php

declare(strict_types=1);

namespace Dq;

use function array_slice;
use function count;
use function in_array;
use function strlen;

/**
 * Keeps large payloads in a store, alike in all languages (docs/secrets.md). A worker deletes what it has opened when the record
 * is gone. The sorted set `<queue>:offload` lists all, and `sweep` finds the others.
 */
final class Offload extends Coding
{
    /** The header with the key of a payload in the store. */
    private const OFFLOAD = 'dq-offload';
    private const WEEK = 7 * 24 * 3_600_000;
    /** The payloads that are remembered after they were opened. */
    private const MOST_OPENED = 100;

    /** @var array<string, string> the queues of payloads that were opened here, by their keys in the store */
    private array $opened = [];

    /**
     * @param int $above payloads of more bytes are kept in the store
     * @param list<string> $queues keys of other queues that messages may have gone to (DEADTO)
     */
    public function __construct(private Store $store, private Client $client, private int $above = 64 * 1024, private array $queues = [])
    {
    }

    public function seal(string $queue, string $id, string $payload, array $headers = []): array
    {
        if (strlen($payload) <= $this->above) {
            return [$payload, $headers];
        }
        $key = "$queue/$id/" . Queue::uuid();
        // It is listed before it is there, so that nothing stays that no list has.
        $this->listed($queue, 'ZADD', self::now(), $key);
        $this->store->put($key, $payload);
        $this->lookBack();
        return ['', [self::OFFLOAD => $key] + $headers];
    }

    public function open(string $queue, string $id, string $payload, array $headers): array
    {
        $key = $headers[self::OFFLOAD] ?? null;
        unset($headers[self::OFFLOAD]);
        if ($key === null) {
            return [$payload, $headers];
        }
        $kept = $this->store->get($key) ?? throw new \OutOfBoundsException("the store has no \"$key\"");
        $this->lookBack();
        // One that was sent to another queue is left to `sweep`.
        if (str_starts_with($key, "$queue/$id/")) {
            $this->opened[$key] = $queue;
        }
        return [$kept, $headers];
    }

    /**
     * Deletes the payloads of a queue whose messages and records are gone. Returns how many. Only those that were put, or
     * found to be needed, more than `$after` ms ago are looked at: a message must have reached its queue within that time. Run it
     * now and then, in one program.
     */
    public function sweep(string $queue, int $after = self::WEEK): int
    {
        $deleted = 0;
        foreach ($this->listed($queue, 'ZRANGEBYSCORE', 0, self::now() - $after) as $key) {
            if ($this->goes($queue, $key)) {
                $deleted++;
            } else {
                $this->listed($queue, 'ZADD', self::now(), $key);
            }
        }
        return $deleted;
    }

    /** Deletes up to two payloads that were opened here before, if their messages and records are gone by now. */
    private function lookBack(): void
    {
        foreach (array_slice($this->opened, 0, 2, true) as $key => $queue) {
            unset($this->opened[$key]);
            try {
                // A dead message may have taken it along.
                $deadTo = (new Queue($this->client, $queue))->info()['deadto'] ?? '';
                if ($deadTo !== '' && !in_array($deadTo, $this->queues, true)) {
                    continue;
                }
                if (!$this->goes($queue, $key) && count($this->opened) < self::MOST_OPENED) {
                    $this->opened[$key] = $queue;
                }
            } catch (\Exception) {
                // It is left to `sweep`.
            }
        }
    }

    /** Deletes a payload, if no message and no record needs it. Returns whether it did. */
    private function goes(string $queue, string $key): bool
    {
        $id = substr($key, strlen($queue) + 1, (int) strrpos($key, '/') - strlen($queue) - 1);
        $isIn = fn (string $one): bool => ((new Queue($this->client, $one))->get($id)['headers'][self::OFFLOAD] ?? null) === $key;
        if (array_filter([$queue, ...$this->queues], $isIn) !== []) {
            return false;
        }
        $this->store->delete($key);
        $this->listed($queue, 'ZREM', $key);
        return true;
    }

    private function listed(string $queue, string $verb, string|int ...$words): mixed
    {
        return $this->client->call("$queue:offload", [$verb, "$queue:offload", ...$words]);
    }

    private static function now(): int
    {
        return (int) (microtime(true) * 1000);
    }
}
