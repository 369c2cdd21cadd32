<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\ConnectionError;
use Dq\Durable;
use Dq\Next;
use Dq\NotConfirmed;
use Dq\PipelineClient;
use Dq\Queue;
use Dq\ServerError;
use Dq\Tests\Server;
use Dq\UrlClient;
use PHPUnit\Framework\TestCase;

/** A queue with `durable`. DQ_TEST_REPLICATED names a server with one replica. */
final class DurableTest extends TestCase
{
    protected function setUp(): void
    {
        Server::redis()->flushAll();
    }

    public static function clients(): array
    {
        return Server::clients() + ['url' => ['url']];
    }

    private static function client(string $name): PipelineClient
    {
        return $name === 'url' ? new UrlClient(Server::url()) : Server::client($name);
    }

    /** Runs something that must throw NotConfirmed, and returns that. */
    private function missing(\Closure $run): NotConfirmed
    {
        try {
            $run();
        } catch (NotConfirmed $missing) {
            return $missing;
        }
        $this->fail('it is confirmed');
    }

    public function testWhatReplicasHaveIsConfirmed(): void
    {
        $url = getenv('DQ_TEST_REPLICATED');
        if ($url === false) {
            $this->markTestSkipped('DQ_TEST_REPLICATED names no server');
        }
        $queue = new Queue(new UrlClient($url), 'durable:' . getmypid(), durable: new Durable(replicas: 1, inMemory: true));
        $this->assertSame('a', $queue->send('a', ['id' => 'a']));
        $this->assertNull($queue->send('a', ['id' => 'a']));
        $this->assertCount(2, $queue->sendMany(['b', 'c']));
        $this->assertSame('x', $queue->groupPush('{"g":"x"}', ['g'])[0]);
        [$a, $b, $c] = $queue->fetch(['count' => 3]);
        $this->assertSame([1, 1], [$queue->ack($a), $queue->nack($b)]);
        $this->assertCount(1, $queue->ackSend($c, [new Next('d')]));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testASendThatNobodyConfirmsIsAnErrorThatNamesItsId(string $client): void
    {
        $durable = new Durable(replicas: 1, inMemory: true, timeout: 10);
        $queue = new Queue(self::client($client), 'q', 0, $durable);
        $missing = $this->missing(fn () => $queue->send('a'));
        $this->assertSame([false, 0], [$missing->synced, $missing->replicas]);
        $this->assertSame('a', $queue->get($missing->id)['payload']);
        $this->assertSame(1, $this->missing(fn () => $queue->ack($queue->fetch()))->reply);
        $this->assertSame(0, $queue->len());
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAnErrorReplyIsAnErrorAsEver(string $client): void
    {
        $queue = new Queue(self::client($client), 'q', 0, new Durable(replicas: 1, inMemory: true, timeout: 10));
        $queue->create(['max_len' => 1]);
        $this->missing(fn () => $queue->send('a', ['id' => 'a']));
        // A taken id is nil.
        $this->assertNull($this->missing(fn () => $queue->send('a', ['id' => 'a']))->reply);
        try {
            $queue->send('b');
            $this->fail('the queue is not full');
        } catch (ServerError $error) {
            $this->assertSame('QUEUEFULL', $error->kind());
        }
        $this->assertSame(1, $queue->len());
        $this->assertSame(['a'], array_column($queue->fetch(), 'payload'));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAServerThatCannotConfirmSaysSo(string $client): void
    {
        $queue = new Queue(self::client($client), 'q', durable: true);
        $pattern = '/appendonly|Redis 7\.2/';
        $this->assertMatchesRegularExpression($pattern, $this->missing(fn () => $queue->send('a', ['id' => 'a']))->getMessage());
        // phpredis gives both replies as false.
        $this->assertMatchesRegularExpression($pattern, $this->missing(fn () => $queue->send('a', ['id' => 'a']))->getMessage());
        $this->assertSame(1, $queue->len());
    }

    /** A `Redis` of phpredis is not made anew by this package. */
    public function testAClientGoesOnAfterItsConnectionBrokeInAPipeline(): void
    {
        foreach (['url', 'predis'] as $name) {
            $this->breakAPipeline(self::client($name));
        }
    }

    private function breakAPipeline(PipelineClient $client): void
    {
        $id = $client->call('q', ['CLIENT', 'ID']);
        try {
            // A connection that has ended itself gets no more replies.
            $client->pipeline('q', [['CLIENT', 'KILL', 'SKIPME', 'no', 'ID', $id], ['WAIT', 0, 10]]);
            $client->pipeline('q', [['CLIENT', 'ID'], ['WAIT', 0, 10]]);
            $this->fail('the connection was not lost');
        } catch (ConnectionError) {
            [$other] = $client->pipeline('q', [['CLIENT', 'ID'], ['WAIT', 0, 10]]);
            $this->assertNotSame($id, $other);
        }
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAUserWithoutTheRightToConfirmIsToldSo(string $client): void
    {
        Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '-wait');
        try {
            $queue = new Queue(self::client($client), 'q', durable: new Durable(replicas: 1, inMemory: true));
            $this->assertStringContainsString('NOPERM', $this->missing(fn () => $queue->send('a'))->getMessage());
            $this->assertSame(1, $queue->len());
        } finally {
            Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '+wait');
        }
    }

    public function testASendIsRepeatedByItsIdUntilItIsConfirmed(): void
    {
        $client = new ForgetfulClient(self::client('url'), [[0, 0], null, [1, 0], [1, 1]]);
        $queue = new Queue($client, 'q', durable: new Durable(replicas: 1));
        $this->assertSame('mine', $queue->send('a', ['id' => 'mine']));
        $this->assertSame([], $client->confirmations);
        $this->assertSame([1, 3], [$queue->len(), $queue->info()['duplicates']]);
    }

    public function testWhatWasSettledBeforeTheConnectionBrokeIsNotConfirmedByStaleReceipts(): void
    {
        $client = new ForgetfulClient(self::client('url'), [[1, 0], null, [1, 0]]);
        $queue = new Queue($client, 'q', durable: true);
        $queue->send('a');
        $this->assertStringContainsString('stale', $this->missing(fn () => $queue->ack($queue->fetch()))->getMessage());
    }

    public function testWhatCannotBeConfirmedIsRefusedBeforeItIsSent(): void
    {
        $plain = new class implements Client {
            public function call(string $key, array $words, bool $waits = false): mixed
            {
                throw new \LogicException('it was sent');
            }

            public function readTimeout(): float
            {
                return 0.0;
            }
        };
        foreach ([[$plain, new Durable()], [self::client('url'), new Durable(timeout: 10_000)]] as [$client, $durable]) {
            try {
                (new Queue($client, 'q', durable: $durable))->send('a');
                $this->fail('it was sent');
            } catch (\InvalidArgumentException) {
                $this->assertSame(0, Server::redis()->exists('q'));
            }
        }
        $this->expectException(\InvalidArgumentException::class);
        new Durable(inMemory: true);
    }
}

/** Puts other confirmations into replies, or loses them (null) after the commands were run. */
final class ForgetfulClient implements PipelineClient
{
    public function __construct(private PipelineClient $client, public array $confirmations)
    {
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        return $this->client->call($key, $words, $waits);
    }

    public function pipeline(string $key, array $commands): array
    {
        [$reply] = $this->client->pipeline($key, $commands);
        $confirmation = array_shift($this->confirmations);
        return [$reply, $confirmation ?? throw new ConnectionError('lost')];
    }

    public function readTimeout(): float
    {
        return $this->client->readTimeout();
    }
}
