<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;

final class SecretsTest extends TestCase
{
    public function testJobsAreEncryptedOnTheirWay(): void
    {
        Server::redis(4)->flushDb();
        $queue = (new App('phpredis', ['secrets' => ['2026' => base64_encode(random_bytes(32))]]))->queue();
        $queue->push('greet', ['name' => 'ann']);
        $queue->bulk(['second'], ['name' => 'ann']);
        [$first, $second] = iterator_to_array($queue->on(null)->list('ready'), false);
        $this->assertStringNotContainsString('ann', $first['payload'] . $second['payload']);
        $queue->on(null)->send($first['payload'], ['id' => 'copied', 'headers' => $first['headers'], 'retain' => 60_000]);
        foreach (['greet', 'second'] as $name) {
            $job = $queue->pop();
            $this->assertSame([$name, ['name' => 'ann']], [$job->getName(), $job->payload()['data']]);
            $job->delete();
        }
        $this->assertNull($queue->pop());
        $this->assertSame('dead', $queue->on(null)->get('copied')['state']);
    }
}
