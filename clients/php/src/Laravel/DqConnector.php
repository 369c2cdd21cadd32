<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Contracts\Redis\Factory as Redis;
use Illuminate\Queue\Connectors\ConnectorInterface;

class DqConnector implements ConnectorInterface
{
    public function __construct(protected Redis $redis)
    {
    }

    /** @param array<string, mixed> $config a connection of config/queue.php; docs/drivers/laravel.md says what it knows */
    public function connect(array $config): DqQueue
    {
        return new DqQueue(
            $this->redis,
            $config['queue'] ?? 'default',
            $config['connection'] ?? null,
            array_key_exists('retry_after', $config) ? $config['retry_after'] : 60,
            $config['block_for'] ?? null,
            $config['after_commit'] ?? null,
            $config['heartbeat'] ?? false,
        );
    }
}
