<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Coding;
use Dq\LostWorkers;
use Dq\Outbox\Outbox;
use Dq\Secrets;
use Illuminate\Contracts\Redis\Factory as Redis;
use Illuminate\Queue\Connectors\ConnectorInterface;

class DqConnector implements ConnectorInterface
{
    /** @param ?\Closure(?string): \Illuminate\Database\Connection $database returns a connection of config/database.php */
    public function __construct(protected Redis $redis, protected ?\Closure $database = null)
    {
    }

    /** @param array<string, mixed> $config a connection of config/queue.php; docs/drivers/laravel.md says what it knows */
    public function connect(array $config): DqQueue
    {
        // A value of the environment is a text.
        $seconds = static fn ($value): ?int => $value === null ? null : (int) $value;
        return new DqQueue(
            $this->redis,
            $config['queue'] ?? 'default',
            $config['connection'] ?? null,
            $seconds(array_key_exists('retry_after', $config) ? $config['retry_after'] : 60),
            $seconds($config['block_for'] ?? null),
            $config['after_commit'] ?? null,
            (bool) ($config['heartbeat'] ?? false),
            (bool) ($config['ack_with_next'] ?? true),
            (int) ($config['lost_workers'] ?? LostWorkers::MOST),
            $this->outbox($config),
            self::coding($config['secrets'] ?? null),
        );
    }

    /** @param null|Coding|array<string, string> $secrets a coding, or keys in base64 by their ids */
    private static function coding(null|Coding|array $secrets): ?Coding
    {
        return is_array($secrets) ? ($secrets === [] ? null : new Secrets(array_map(base64_decode(...), $secrets))) : $secrets;
    }

    /** @return ?\Closure(DqQueue): Outbox */
    private function outbox(array $config): ?\Closure
    {
        $name = $config['outbox'] ?? false;
        if ($name === false) {
            return null;
        }
        $database = $this->database ?? throw new \InvalidArgumentException('the outbox of a dq connection needs the databases of Laravel');
        $rows = new TableRows(static fn () => $database($name === true ? null : $name));
        $durable = (bool) ($config['outbox_durable'] ?? false);
        return static fn (DqQueue $queue): Outbox => new Outbox($queue->client(...), $rows, durable: $durable);
    }
}
