<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\ConnectionError;
use Dq\Message;
use Dq\Queue;
use Dq\Tests\Server;
use Dq\UrlClient;
use Dq\Worker;
use PHPUnit\Framework\TestCase;

final class WorkerTest extends TestCase
{
    private Queue $queue;

    protected function setUp(): void
    {
        Server::redis()->flushAll();
        $this->queue = new Queue(new UrlClient(Server::url()), 'q');
        $this->queue->create(['retries' => 2, 'retain' => 60_000]);
    }

    private function send(string ...$ids): void
    {
        foreach ($ids as $id) {
            $this->queue->send($id, ['id' => $id]);
        }
    }

    private function calls(string $verb): int
    {
        preg_match('/calls=(\d+)/', Server::redis()->info('commandstats')["cmdstat_dq.$verb"] ?? '', $found);
        return (int) ($found[1] ?? 0);
    }

    /** Runs the worker in a process of its own, which writes its steps into the list `log`. */
    private function child(callable $program): int
    {
        $child = pcntl_fork();
        if ($child === 0) {
            try {
                $program(Server::redis(), new Queue(new UrlClient(Server::url()), 'q'));
            } catch (\Throwable $error) {
                fwrite(STDERR, $error . "\n");
            }
            posix_kill(getmypid(), SIGKILL);
        }
        return $child;
    }

    public function testEachRoundTripAcksAndFetches(): void
    {
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
        $this->send('a', 'b', 'c', 'd', 'e');
        $seen = [];
        $handler = function (Message $message) use (&$seen): ?string {
            $seen[] = $message->id;
            return $message->id === 'c' ? 'a result' : null;
        };
        (new Worker($this->queue, $handler, count: 2, maxMessages: 5))->run();
        $this->assertSame(['a', 'b', 'c', 'd', 'e'], $seen);
        $this->assertSame([0, 5], [$this->queue->len(), $this->queue->info()['finished']]);
        $this->assertSame('a result', $this->queue->get('c')['result']);
        // There are three fetches, one ack with a result, and one ack of the last message.
        $this->assertSame([3, 2], [$this->calls('fetch'), $this->calls('ack')]);
    }

    public function testAWorkerThatStopsFetchesNothingThatItHasGivenBack(): void
    {
        $this->send('a', 'b', 'c', 'd');
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
        $delivered = $this->queue->info()['delivered'];
        // The worker stops after one message, which has failed, and gives back those that it has not begun.
        (new Worker($this->queue, fn () => throw new \DomainException('wrong'), count: 3, maxMessages: 1))->run();
        $this->assertSame([1, 3], [$this->calls('fetch'), $this->queue->info()['delivered'] - $delivered]);
        $this->assertSame([4, 0], [$this->queue->len(), $this->queue->len('running')]);
    }

    public function testAWorkerThatStopsWhileAFetchIsLostGivesBackWhatItBringsAndFetchesNoMore(): void
    {
        $this->send('a');
        $client = new class ($this->queue->client) implements Client {
            public ?Worker $worker = null;
            public int $fetches = 0;

            public function __construct(private Client $real)
            {
            }

            public function call(string $key, array $words, bool $waits = false): mixed
            {
                $reply = $this->real->call($key, $words, $waits);
                if ($words[0] === 'DQ.FETCH' && ++$this->fetches === 1) {
                    $this->worker->stop();
                    throw new ConnectionError('lost');
                }
                return $reply;
            }

            public function readTimeout(): float
            {
                return 10.0;
            }
        };
        $client->worker = new Worker(new Queue($client, 'q'), fn () => throw new \LogicException('it was begun'));
        $client->worker->run();
        $record = $this->queue->get('a');
        $this->assertSame([2, 'ready', 0, 0], [$client->fetches, $record['state'], $record['attempt'], $record['failures']]);
    }

    public function testSigtermEndsAWaitingWorkerAndLetsARunningHandlerFinish(): void
    {
        $program = function (\Redis $redis, Queue $queue): void {
            $handler = function (Message $message) use ($redis): void {
                $redis->rPush('log', "start $message->id");
                for ($n = 0; $n < 40; $n++) {
                    usleep(10_000); // a signal ends a sleep early
                }
                $redis->rPush('log', "end $message->id");
            };
            (new Worker($queue, $handler, count: 2, block: 300))->run();
            $redis->rPush('log', 'stopped');
        };
        $redis = Server::redis();
        $child = $this->child($program);
        Server::until(fn () => $redis->info('clients')['blocked_clients'] > 0, 'a waiting worker');
        $this->send('a', 'b');
        Server::until(fn () => $redis->lLen('log') > 0, 'a handler');
        posix_kill($child, SIGTERM);
        pcntl_waitpid($child, $status);
        $this->assertSame(['start a', 'end a', 'stopped'], $redis->lRange('log', 0, -1));
        $this->assertSame(['finished', 'ready'], [$this->queue->get('a')['state'], $this->queue->get('b')['state']]);
    }

    public function testTheHeartbeatKeepsTheLeaseOfAHandlerThatBlocks(): void
    {
        $program = function (\Redis $redis, Queue $queue): void {
            $handler = function () use ($redis): void {
                $redis->blPop('never', 3); // no PHP code runs meanwhile
            };
            (new Worker($queue, $handler, count: 2, lease: 1500, maxMessages: 2))->run();
        };
        $this->send('a', 'b');
        pcntl_waitpid($this->child($program), $status);
        $this->assertSame([0, 2, 0], array_map(fn ($f) => $this->queue->info()[$f], ['timeouts', 'finished', 'redelivered']));
    }

    public function testTheHeartbeatEndsWithAKilledWorker(): void
    {
        $program = function (\Redis $redis, Queue $queue): void {
            $handler = function () use ($redis): void {
                // A program started by the handler inherits the socket of the heartbeat, and lives on.
                proc_open(['sleep', '3'], [], $pipes);
                $redis->rPush('log', 'start');
                sleep(60);
            };
            (new Worker($queue, $handler, lease: 600))->run();
        };
        $redis = Server::redis();
        $this->send('a');
        $child = $this->child($program);
        Server::until(fn () => $redis->lLen('log') > 0, 'a handler');
        posix_kill($child, SIGKILL);
        pcntl_waitpid($child, $status);
        [$message] = $this->queue->fetch(['block' => 2500]);
        $this->assertSame(['a', 2], [$message->id, $message->attempt]);
    }

    public function testTheTimeLimitEndsTheHeartbeatOfAHandlerThatHangs(): void
    {
        $program = function (\Redis $redis, Queue $queue): void {
            (new Worker($queue, fn () => sleep(60), lease: 300, timeLimit: 500))->run();
        };
        $this->send('a');
        $child = $this->child($program);
        $this->assertTrue(Server::until(fn () => $this->queue->info()['timeouts'] === 1, 'the end of the lease'));
        posix_kill($child, SIGKILL);
        pcntl_waitpid($child, $status);
    }

    public function testALostConnectionIsMadeAnewAndTheAckComesThen(): void
    {
        $this->send('a', 'b');
        $seen = [];
        $handler = function (Message $message) use (&$seen): void {
            $seen[] = $message->id;
            Server::redis()->rawCommand('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        };
        (new Worker($this->queue, $handler, maxMessages: 2))->run();
        $this->assertSame([['a', 'b'], 2], [$seen, $this->queue->info()['finished']]);
    }

    public function testAMessageInALostReplyIsHandledAtOnce(): void
    {
        $this->send('a');
        $client = new class ($this->queue->client) implements Client {
            private int $fetches = 0;

            public function __construct(private Client $real)
            {
            }

            public function call(string $key, array $words, bool $waits = false): mixed
            {
                $reply = $this->real->call($key, $words, $waits);
                if ($words[0] === 'DQ.FETCH' && ++$this->fetches === 1) {
                    throw new ConnectionError('lost');
                }
                return $reply;
            }

            public function readTimeout(): float
            {
                return 10.0;
            }
        };
        (new Worker(new Queue($client, 'q'), fn () => null, maxMessages: 1))->run();
        $record = $this->queue->get('a');
        $this->assertSame(['finished', 1], [$record['state'], $record['attempt']]);
    }

    public function testAStopWhileThereIsNoServerStillAcksWhatIsDone(): void
    {
        $this->send('a');
        $real = $this->queue->client;
        $client = new class ($real) implements Client {
            public ?Worker $worker = null;
            private int $fetches = 0;

            public function __construct(private Client $real)
            {
            }

            public function call(string $key, array $words, bool $waits = false): mixed
            {
                if ($words[0] === 'DQ.FETCH' && ++$this->fetches === 2) {
                    $this->worker->stop();
                    throw new ConnectionError('lost');
                }
                return $this->real->call($key, $words, $waits);
            }

            public function readTimeout(): float
            {
                return 10.0;
            }
        };
        $client->worker = new Worker(new Queue($client, 'q'), fn () => null);
        $client->worker->run();
        $this->assertSame('finished', $this->queue->get('a')['state']);
    }

    public function testAnErrorThatWillNotPassEndsRun(): void
    {
        Server::redis()->set('text', 'x');
        $this->expectExceptionMessage('WRONGTYPE');
        (new Worker(new Queue($this->queue->client, 'text'), fn () => null))->run();
    }
}
