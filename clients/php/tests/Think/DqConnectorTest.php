<?php

declare(strict_types=1);

namespace Dq\Tests\Think;

use Dq\Tests\Server;
use Dq\Think\DqConnector;
use PHPUnit\Framework\TestCase;

if (!class_exists(\think\queue\Connector::class)) {
    require __DIR__ . '/stubs.php';
}

final class DqConnectorTest extends TestCase
{
    protected function setUp(): void
    {
        Server::redis()->flushAll();
    }

    private static function connector(array $config = []): DqConnector
    {
        $config += ['host' => Server::host(), 'port' => (string) Server::port(), 'password' => '', 'select' => 3];
        return DqConnector::__make($config)->setApp(new \think\App())->setConnection('dq');
    }

    public function testAJobComesBackWithItsAttempts(): void
    {
        $queue = self::connector();
        $this->assertNull($queue->pop());
        $id = $queue->push('app\job\Mail', ['to' => '安']);
        $this->assertSame(1, $queue->size());
        $this->assertSame(['dq:default'], Server::redis(3)->keys('*'));
        for ($attempt = 1; $attempt <= 6; $attempt++) {
            $job = $queue->pop();
            $this->assertSame([$id, $attempt, 'default'], [$job->getJobId(), $job->attempts(), $job->getQueue()]);
            $this->assertSame(['to' => '安'], $job->payload('data'));
            $job->release();
            $this->assertTrue($job->isReleased());
        }
        $job = $queue->pop();
        $record = $queue->on(null)->get($queue->on(null)->peek()[0]['id'] ?? iterator_to_array($queue->on(null)->list('running'))[0]['id']);
        $this->assertSame(['app\job\Mail', -1], [$record['type'], $record['retries-left']]);
        $this->assertEqualsWithDelta(60_000, $record['lease-until'] - $record['started-at'], 5);
        $job->release(1000);
        $this->assertNull($queue->pop());
        $this->assertSame(1, $queue->size());
    }

    public function testADelayedJobEndsAWaitInTheMillisecond(): void
    {
        $queue = self::connector(['block_for' => 5]);
        $queue->later(new \DateTimeImmutable('+300 milliseconds'), 'a', '', 'q');
        $queue->later(100, 'b', '', 'q');
        $job = $queue->pop('q');
        $record = iterator_to_array($queue->on('q')->list('running'))[0];
        $this->assertLessThan(2000, $record['started-at'] - $record['due-at']);
        $job->delete();
        $this->assertSame([1, 1], [$queue->size('q'), $queue->on('q')->len('delayed')]);
    }

    public function testAJobOfALostWorkerComesBackAndTheLostOneCannotDeleteIt(): void
    {
        $queue = self::connector(['retry_after' => 2, 'block_for' => 5]);
        $queue->push('a');
        $lost = $queue->pop();
        $job = $queue->pop();
        $this->assertSame(2, $job->attempts());
        $lost->delete();
        $this->assertSame(1, $queue->size());
        $job->delete();
        $this->assertSame(0, $queue->size());
    }

    public function testRetryAfterNullIsNever(): void
    {
        $queue = self::connector(['retry_after' => null]);
        $queue->push('a');
        $queue->pop();
        $record = iterator_to_array($queue->on(null)->list('running'))[0];
        $this->assertGreaterThan(1000 * 365 * 86_400_000, $record['lease-until'] - $record['started-at']);
    }

    public function testAJobThatKillsItsWorkersIsDeadAfterThree(): void
    {
        $queue = self::connector(['retry_after' => 1]);
        $queue->push('a');
        for ($n = 1; $n <= 3; $n++) {
            $this->assertSame($n, $queue->pop()->attempts());
            Server::until(fn () => $queue->on(null)->len('running') === 0, 'the end of the lease');
        }
        $this->assertNull($queue->pop());
        [$record] = iterator_to_array($queue->on(null)->list('dead'));
        $this->assertSame('given up: 3 workers were lost with it', $record['error']);
    }
}
