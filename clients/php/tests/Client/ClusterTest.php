<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\PhpRedisClient;
use Dq\Queue;
use Dq\ServerError;
use PHPUnit\Framework\TestCase;

/** phpredis with a Redis Cluster. DQ_TEST_CLUSTER names its nodes: 127.0.0.1:7000,127.0.0.1:7001. */
final class ClusterTest extends TestCase
{
    public function testEveryQueueIsOnItsNode(): void
    {
        if (!getenv('DQ_TEST_CLUSTER')) {
            $this->markTestSkipped('DQ_TEST_CLUSTER is not set');
        }
        $client = new PhpRedisClient(new \RedisCluster(null, explode(',', getenv('DQ_TEST_CLUSTER')), 5, 10));
        $this->assertSame(10.0, $client->readTimeout());
        foreach (range(1, 20) as $n) {
            $queue = new Queue($client, "queue$n");
            $queue->ensure(['retries' => 5]);
            $queue->later(50, "m$n", ['id' => "m$n"]);
            $this->assertNull($queue->send('again', ['id' => "m$n"]));
            [$message] = $queue->fetch(['block' => 2000]);
            $this->assertSame("m$n", $message->payload);
            $this->assertSame(1, $queue->ack($message));
            $this->assertNull($queue->get("m$n"));
        }
        $this->expectException(ServerError::class);
        $queue->do('SEND', 'x', 'NONSENSE');
    }
}
