<?php

declare(strict_types=1);

namespace Dq\Tests\Hyperf;

use Dq\Hyperf\DqDriver;
use Dq\Queue;
use Dq\PhpRedisClient;
use Dq\ServerError;
use Dq\Tests\Server;
use Hyperf\Redis\RedisFactory;
use PHPUnit\Framework\TestCase;
use Psr\Container\ContainerInterface;

if (!class_exists(\Hyperf\AsyncQueue\Driver\Driver::class)) {
    require __DIR__ . '/stubs.php';
}

final class DqDriverTest extends TestCase
{
    private Queue $queue;

    protected function setUp(): void
    {
        Server::redis()->flushAll();
        $this->queue = new Queue(new PhpRedisClient(Server::redis()), 'dq:queue');
    }

    private static function driver(array $config = []): DqDriver
    {
        $container = new class () implements ContainerInterface {
            public function get(string $id)
            {
                return new RedisFactory(Server::redis());
            }

            public function has(string $id): bool
            {
                return true;
            }
        };
        return new DqDriver($container, $config + ['timeout' => 1]);
    }

    public function testAJobIsTriedAgainAndFailsInTheEnd(): void
    {
        $driver = self::driver(['retry_seconds' => 0]);
        $this->assertSame(['waiting' => 0, 'delayed' => 0, 'reserved' => 0, 'failed' => 0, 'timeout' => 0], $driver->info());
        $driver->push(new CountedJob('bad', maxAttempts: 2, fails: true));
        $driver->push(new CountedJob('good', maxAttempts: 2));
        $outcomes = array_count_values(array_map(fn () => $driver->one() ?? 'none', range(1, 5)));
        $this->assertEquals(['retried' => 2, 'acked' => 1, 'failed' => 1, 'none' => 1], $outcomes);
        $this->assertSame(1, $driver->info()['failed']);
        $this->assertSame(1, $driver->reload());
        $this->assertSame(['retried', 'retried', 'failed'], array_map(fn () => $driver->one(), range(1, 3)));
        $this->assertTrue($driver->flush());
        $this->assertFalse($driver->flush());
        $this->assertSame(0, $driver->reload('timeout'));
    }

    public function testRetrySecondsForEachAttempt(): void
    {
        $driver = self::driver(['retry_seconds' => [100, 200]]);
        $driver->push(new CountedJob('bad', maxAttempts: 5, fails: true));
        foreach ([100, 200, 200] as $seconds) {
            $driver->one();
            [$record] = iterator_to_array($this->queue->list('retry'), false);
            $this->assertEqualsWithDelta(microtime(true) + $seconds, $record['due-at'] / 1000, 5);
            $this->queue->reschedule($record['id'], ['delay' => 0]);
        }
    }

    public function testADelayedJobEndsAWaitInTheMillisecondAndEqualJobsStayTwo(): void
    {
        $driver = self::driver(['timeout' => 5]);
        $driver->push(new CountedJob('same'), 1);
        $driver->push(new CountedJob('same'), 1);
        $this->assertSame(2, $driver->info()['delayed']);
        [$delivery] = $driver->pop();
        $record = $this->queue->get($delivery->id);
        $this->assertSame([1000, CountedJob::class], [$record['due-at'] - $record['sent-at'], $record['type']]);
        $this->assertLessThan(2000, $record['started-at'] - $record['due-at']);
    }

    public function testDeleteCancelsEqualDelayedJobsOnly(): void
    {
        $driver = self::driver();
        foreach ([['a', 60], ['a', 90], ['b', 60], ['a', 0]] as [$name, $delay]) {
            $driver->push(new CountedJob($name), $delay);
        }
        $this->assertTrue($driver->delete(new CountedJob('a')));
        $this->assertFalse($driver->delete(new CountedJob('a')));
        $this->assertSame([1, 1], [$driver->info()['waiting'], $driver->info()['delayed']]);
    }

    public function testAJobOfALostWorkerComesBackAndCountsAnAttempt(): void
    {
        $driver = self::driver(['handle_timeout' => 2, 'timeout' => 5]);
        $driver->push(new CountedJob('a'));
        [$lost] = $driver->pop();
        [$delivery, $message] = $driver->pop();
        $this->assertSame([2, 1], [$delivery->attempt, $message->getAttempts()]);
        $this->assertFalse($driver->ack($lost));
        $this->assertTrue($driver->ack($delivery));
    }

    public function testWhatCannotBeReadIsDead(): void
    {
        $this->queue->send('nonsense');
        $this->assertSame([false, null], self::driver()->pop());
        $this->assertSame(1, $this->queue->len('dead'));
    }

    public function testAnErrorIsThrown(): void
    {
        Server::redis()->set('dq:queue', 'text');
        $this->expectException(ServerError::class);
        self::driver()->push(new CountedJob('a'));
    }

    public function testAJobThatKillsItsWorkersIsDeadAfterThree(): void
    {
        $driver = self::driver(['handle_timeout' => 1]);
        $driver->push(new CountedJob('killer', maxAttempts: 9));
        for ($n = 1; $n <= 3; $n++) {
            $this->assertNotFalse($driver->pop()[0]);
            Server::until(fn () => $this->queue->len('running') === 0, 'the end of the lease');
        }
        $this->assertSame([false, null], $driver->pop());
        [$record] = iterator_to_array($this->queue->list('dead'));
        $this->assertSame('given up: 3 workers were lost with it', $record['error']);
    }
}
