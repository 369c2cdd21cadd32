<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Queue;
use Dq\Tests\Server;
use Dq\UrlClient;

/** A queue over each kind of client, on an empty server. */
trait Queues
{
    private \Redis $redis;

    protected function setUp(): void
    {
        $this->redis = Server::redis();
        $this->redis->flushAll();
    }

    public static function clients(): array
    {
        return Server::clients() + ['url' => ['url']];
    }

    /** A queue whose time moves only by DQ.TICK. */
    private function manual(string $client, array $options = []): Queue
    {
        $queue = $this->queue($client);
        $queue->create(['clock' => ['MANUAL', 1_000_000]] + $options);
        return $queue;
    }

    private function queue(string $client): Queue
    {
        return new Queue($client === 'url' ? new UrlClient(Server::url()) : Server::client($client), 'q');
    }
}
