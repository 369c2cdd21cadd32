<?php

declare(strict_types=1);

namespace Dq;

use function strlen;

/** Keeps large payloads in a store, alike in all languages (docs/secrets.md). The sorted set `<queue>:offload` lists them for `sweep`. */
final class Offload extends Coding
{
    /** The header with the key of a payload in the store. */
    private const OFFLOAD = 'dq-offload';
    private const WEEK = 7 * 24 * 3_600_000;

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
        return ['', [self::OFFLOAD => $key] + $headers];
    }

    public function open(string $queue, string $id, string $payload, array $headers): array
    {
        $key = $headers[self::OFFLOAD] ?? null;
        unset($headers[self::OFFLOAD]);
        return [$key === null ? $payload : $this->store->get($key) ?? throw new \OutOfBoundsException("the store has no \"$key\""), $headers];
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
            $id = substr($key, strlen($queue) + 1, (int) strrpos($key, '/') - strlen($queue) - 1);
            $isIn = fn (string $one): bool => ((new Queue($this->client, $one))->get($id)['headers'][self::OFFLOAD] ?? null) === $key;
            if (array_filter([$queue, ...$this->queues], $isIn) !== []) {
                $this->listed($queue, 'ZADD', self::now(), $key);
                continue;
            }
            $this->store->delete($key);
            $this->listed($queue, 'ZREM', $key);
            $deleted++;
        }
        return $deleted;
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
