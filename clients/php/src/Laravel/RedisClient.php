<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\PhpRedisClient;
use Dq\PipelineClient;
use Dq\PredisClient;
use Dq\PrefixingClient;
use Illuminate\Redis\Connections\Connection;

/** A connection of config/database.php, with its events, its prefix and its reconnects. */
final class RedisClient implements PipelineClient, PrefixingClient
{
    public function __construct(private Connection $connection)
    {
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        return $this->client()->call($key, $words, $waits);
    }

    public function pipeline(string $key, array $commands): array
    {
        return $this->client()->pipeline($key, $commands);
    }

    public function readTimeout(): float
    {
        return $this->client()->readTimeout();
    }

    public function prefixed(string $key): string
    {
        return $this->client()->prefixed($key);
    }

    /** The client behind the connection, which another one replaces when it is lost. */
    private function client(): PhpRedisClient|PredisClient
    {
        $redis = $this->connection->client();
        return $redis instanceof \Redis || $redis instanceof \RedisCluster
            ? new PhpRedisClient($redis, fn (array $words): mixed => $this->connection->command('rawCommand', $words))
            : new PredisClient($redis, fn ($command): mixed => $this->connection->command('executeCommand', [$command]));
    }
}
