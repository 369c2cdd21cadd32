<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Tests\Server;
use Illuminate\Queue\Events\JobProcessed;
use Illuminate\Queue\Events\Looping;
use Illuminate\Queue\Events\WorkerStopping;

/** A finished job is acked by the command that fetches the next one, unless `ack_with_next` is false. */
final class AckWithNextTest extends AppTestCase
{
    private function push(string $queue, string ...$names): void
    {
        foreach ($names as $name) {
            $this->queue->pushOn($queue, new Note($name));
        }
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
    }

    /** How often each verb was called since the last push. */
    private static function calls(): array
    {
        $calls = [];
        foreach (Server::redis()->info('commandstats') as $name => $text) {
            if (preg_match('/^cmdstat_dq\.(fetch|mfetch|ack)$/', $name, $found)) {
                $calls[$found[1]] = (int) substr($text, strlen('calls='));
            }
        }
        ksort($calls);
        return $calls;
    }

    /** The number of running jobs, asked for in another way than a worker would. */
    private static function running(): int
    {
        return Server::redis(4)->rawCommand('DQ.LEN', 'app_dq:default', 'running');
    }

    /** Runs a worker for one job of the queue `default`, up to the next round. */
    private function runOne(): void
    {
        $this->app->events->dispatch(new Looping('dq', 'default'));
        $this->queue->pop('default')->fire();
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobIsOneCommand(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a', 'b', 'c');
        $this->work('default');
        $this->assertSame(['a 1 default', 'b 1 default', 'c 1 default'], Note::$seen);
        // The last fetch acks `c` and finds nothing more.
        $this->assertSame(['fetch' => 4], self::calls());
        $this->assertSame(3, $this->queue->on('default')->info()['acked']);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testWithoutTheOptionAJobIsAckedAtOnce(string $driver): void
    {
        $this->start($driver, ['ack_with_next' => false]);
        $this->push('default', 'a');
        $this->runOne();
        $this->assertSame(0, self::running());
        $this->assertSame(['ack' => 1, 'fetch' => 1], self::calls());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testTheFirstOfSeveralQueuesStaysTheFirst(string $driver): void
    {
        $this->start($driver, ['block_for' => 1]);
        $this->push('low', 'l1', 'l2');
        $this->push('high', 'h1', 'h2');
        $this->work('high,low');
        $this->assertSame(['h1 1 high', 'h2 1 high', 'l1 1 low', 'l2 1 low'], Note::$seen);
        // h1; h2 with the ack of h1; nothing with the ack of h2, so both are waited for; from then on both each time.
        $this->assertSame(['ack' => 2, 'fetch' => 2, 'mfetch' => 4], self::calls());
        $this->assertSame([0, 0], [$this->queue->size('high'), $this->queue->size('low')]);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerThatStopsAcksItsLastJob(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a', 'b');
        $this->work('default', ['maxJobs' => 1]);
        $this->assertSame([1, 0], [$this->queue->size(), self::running()]);
        $this->assertSame(['ack' => 1, 'fetch' => 1], self::calls());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerStopsAlsoWithoutItsServer(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a');
        $this->runOne();
        Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '-dq.ack');
        try {
            $this->app->events->dispatch(new WorkerStopping(0));
            $this->assertSame(1, self::running());
        } finally {
            Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '+@all');
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobThatDeletesItselfIsAckedAtOnce(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Deletes());
        $this->work('default');
        $this->assertSame(['running: 0'], Note::$seen);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAListenerSeesAFinishedJobAsFinished(string $driver): void
    {
        $this->start($driver);
        $sizes = [];
        $this->app->events->listen(JobProcessed::class, function () use (&$sizes): void {
            $sizes[] = $this->queue->size();
        });
        $this->push('default', 'a', 'b');
        $this->work('default');
        $this->assertSame([1, 0], $sizes);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerThatIsAboutToRestAcksAtOnce(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a', 'b', 'c');
        $this->runOne();
        $this->assertSame(1, self::running());
        // `artisan down`
        $this->app->container->isDown = true;
        $this->runOne();
        $this->assertSame(0, self::running());
        $this->app->container->isDown = false;
        // SIGUSR2
        $worker = $this->app->worker();
        $worker->paused = true;
        $this->app->container->instance('queue.worker', $worker);
        $this->runOne();
        $this->assertSame(0, self::running());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerThatRestsBetweenJobsAcksAtOnce(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a', 'b');
        $this->runOne();
        $this->assertSame(1, self::running());
        // --rest=1
        usleep(600_000);
        $this->runOne();
        $this->assertSame(0, self::running());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAnAckDoesNotOutwaitARoundWithoutAPop(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a');
        $this->runOne();
        // A worker whose queue was paused by `queue:pause` asks for nothing.
        $this->app->events->dispatch(new Looping('dq', 'default'));
        $this->assertSame(1, self::running());
        $this->app->events->dispatch(new Looping('dq', 'default'));
        $this->assertSame(0, self::running());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testOutsideOfAWorkerAJobIsAckedAtOnce(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a');
        $this->queue->pop()->fire();
        $this->assertSame(0, self::running());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAnAckThatWasRefusedIsSentAgain(string $driver): void
    {
        $this->start($driver);
        $this->push('default', 'a', 'b');
        $this->runOne();
        Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '-dq.fetch');
        try {
            $this->queue->pop();
            $this->fail('it was not refused');
        } catch (\Dq\ServerError $error) {
            $this->assertStringContainsString('NOPERM', $error->getMessage());
        } finally {
            Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '+@all');
        }
        $this->assertSame(1, self::running());
        $this->queue->pop()->fire();
        $this->assertSame(2, $this->queue->on(null)->info()['acked']);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAnAckThatIsRefusedForGoodDoesNotStopTheWorker(string $driver): void
    {
        $this->start($driver);
        $this->push('low', 'a');
        $this->app->events->dispatch(new Looping('dq', 'high,low'));
        $this->queue->pop('high,low')->fire();
        Server::redis(4)->set('app_dq:low', 'something else');
        $this->push('high', 'b');
        try {
            $this->queue->pop('high');
            $this->fail('it was not refused');
        } catch (\Dq\ServerError $error) {
            $this->assertStringContainsString('WRONGTYPE', $error->getMessage());
        }
        $this->assertSame('high', $this->queue->pop('high')->getQueue());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAFinishedJobKeepsItsLeaseUntilItsAck(string $driver): void
    {
        $this->start($driver, ['retry_after' => 1, 'heartbeat' => true]);
        $this->push('default', 'a');
        $this->runOne();
        Server::redis()->blPop('never', 3);
        $this->assertNull($this->queue->pop());
        $info = $this->queue->on(null)->info();
        $this->assertSame([0, 1], [$info['timeouts'], $info['acked']]);
    }
}
