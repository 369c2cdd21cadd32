<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\PhpRedisClient;
use Dq\PipelineClient;
use Dq\PredisClient;
use Illuminate\Redis\Connections\Connection;

/** A connection of config/database.php, with its events, its prefix and its reconnects. */
final class RedisClient implements PipelineClient
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

    /** Returns a key as the connection's own commands would write it. A raw command has no prefix. */
    public function prefixed(string $key): string
    {
        $redis = $this->connection->client();
        if ($redis instanceof \Redis || $redis instanceof \RedisCluster) {
            return $redis->_prefix($key);
        }
        return ($redis->getOptions()->prefix?->getPrefix() ?? '') . $key;
    }

    /** The client behind the connection, which another one replaces when it is lost. */
    private function client(): PipelineClient
    {
        $redis = $this->connection->client();
        return $redis instanceof \Redis || $redis instanceof \RedisCluster
            ? new PhpRedisClient($redis, fn (array $words): mixed => $this->connection->command('rawCommand', $words))
            : new PredisClient($redis, fn ($command): mixed => $this->connection->command('executeCommand', [$command]));
    }
}
