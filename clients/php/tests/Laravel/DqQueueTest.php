<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Laravel\DqJob;
use Dq\Tests\Server;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Events\JobQueued;

/** The tests named in Suite::LEFT_OUT, and cases that Laravel's own tests do not have. */
final class DqQueueTest extends AppTestCase
{
    private static function nameOf(?DqJob $job): ?string
    {
        return $job === null ? null : unserialize($job->payload()['data']['command'])->name;
    }

    /** The one job in a state, as DQ.LIST shows it. */
    private function only(string $state, ?string $queue = null): array
    {
        $all = iterator_to_array($this->queue->on($queue)->list($state), false);
        $this->assertCount(1, $all);
        return $all[0];
    }

    // ---- instead of the tests that read the lists and sets of Redis ----------------------------------------------------

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testExpiredJobsArePopped(string $driver): void
    {
        $this->start($driver);
        foreach ([1000, -200, -300, -100] as $n => $delay) {
            $this->queue->later($delay, new Note("$n"));
        }
        // A due time in the past is now, so these keep the order in which they were sent.
        $this->assertSame(['1', '2', '3'], array_map(fn () => self::nameOf($this->queue->pop()), range(1, 3)));
        $this->assertNull($this->queue->pop());
        $this->assertSame([1, 3, 0], [$this->queue->delayedSize(), $this->queue->reservedSize(), $this->queue->pendingSize()]);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testMigrateMoreThan100Jobs(string $driver): void
    {
        $this->start($driver);
        for ($n = 1; $n <= 201; $n++) {
            $this->queue->later(-$n, new Note("$n"));
        }
        for ($n = 1; $n <= 201; $n++) {
            $this->assertSame("$n", self::nameOf($this->queue->pop()));
        }
    }

    public static function leases(): array
    {
        $cases = [];
        foreach (self::DRIVERS as [$driver]) {
            foreach ([60, 30, null] as $seconds) {
                foreach (['push', 'later'] as $verb) {
                    $cases["$driver, $verb, " . ($seconds ?? 'null')] = [$driver, $verb, $seconds];
                }
            }
        }
        return $cases;
    }

    /**
     * testPopProperlyPopsJobOffOfRedis, testPopProperlyPopsDelayedJobOffOfRedis, testExpireJobsWhenExpireSet,
     * testPopPopsDelayedJobOffOfRedisWhenExpireNull, testNotExpireJobsWhenExpireNull.
     *
     * @dataProvider leases
     */
    #[\PHPUnit\Framework\Attributes\DataProvider('leases')]
    public function testAJobIsReservedForRetryAfter(string $driver, string $verb, ?int $seconds): void
    {
        $this->start($driver, ['retry_after' => $seconds]);
        $verb === 'push' ? $this->queue->push(new Note('a')) : $this->queue->later(-10, new Note('a'));
        $before = time();
        $job = $this->queue->pop();
        $after = time() + 1;
        $this->assertSame(['a', 1], [self::nameOf($job), $job->attempts()]);
        $this->assertSame($job->payload()['id'], $job->getJobId());
        $reserved = $this->only('running');
        $this->assertSame($job->getRawBody(), $reserved['payload']);
        $this->assertSame([-1, Note::class], [$reserved['retries-left'], $reserved['type']]);
        if ($seconds === null) {
            $this->assertGreaterThan(($before + 1000 * 365 * 86400) * 1000, $reserved['lease-until']);
        } else {
            $this->assertGreaterThanOrEqual(($before + $seconds) * 1000, $reserved['lease-until']);
            $this->assertLessThanOrEqual(($after + $seconds) * 1000, $reserved['lease-until']);
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testRelease(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Note('a'));
        $job = $this->queue->pop();
        $before = time();
        $job->release(1000);
        $after = time() + 1;
        $this->assertSame([1, 0, 1], [$this->queue->delayedSize(), $this->queue->reservedSize(), $this->queue->size()]);
        $delayed = $this->only('retry');
        $this->assertGreaterThanOrEqual(($before + 1000) * 1000, $delayed['due-at']);
        $this->assertLessThanOrEqual(($after + 1000) * 1000, $delayed['due-at']);
        $this->assertSame(1, $delayed['attempt']);
        $this->assertNull($this->queue->pop());
    }

    // ---- what they do not ask ----------------------------------------------------------------------------------------

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testEveryReleaseCountsAnAttemptWithoutEnd(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Note('a'));
        for ($attempt = 1; $attempt <= 12; $attempt++) {
            $job = $this->queue->pop();
            $this->assertSame($attempt, $job->attempts());
            $job->release();
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobOfALostWorkerComesBackAndTheLostOneCannotDeleteIt(string $driver): void
    {
        $this->start($driver, ['retry_after' => 2, 'block_for' => 5]);
        $this->queue->push(new Note('a'));
        $lost = $this->queue->pop();
        $job = $this->queue->pop();
        $this->assertSame([1, 2], [$lost->attempts(), $job->attempts()]);
        $lost->delete();
        $this->assertSame(1, $this->queue->reservedSize());
        $job->delete();
        $this->assertSame(0, $this->queue->size());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testADelayedJobEndsAWaitInTheMillisecond(string $driver): void
    {
        $this->start($driver, ['block_for' => 5]);
        $this->queue->later(new \DateTimeImmutable('+300 milliseconds'), new Note('a'));
        $this->assertSame('a', self::nameOf($this->queue->pop()));
        $late = $this->only('running');
        $this->assertLessThan(2000, $late['first-started-at'] - $late['due-at']);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testDelaysOfAllKinds(string $driver): void
    {
        $this->start($driver);
        $kinds = ['seconds' => 100, 'time' => new \DateTimeImmutable('+100 seconds'), 'span' => new \DateInterval('PT100S')];
        foreach ($kinds as $name => $delay) {
            $this->queue->laterOn('q', $delay, new Note($name));
        }
        foreach ($this->queue->on('q')->list('delayed') as $record) {
            $this->assertEqualsWithDelta((time() + 100) * 1000, $record['due-at'], 3000);
        }
        $this->assertSame(3, $this->queue->delayedSize('q'));
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testBulkIsOneCommandAndKeepsItsOrder(string $driver): void
    {
        $this->start($driver);
        $queued = [];
        $this->app->events->listen(JobQueued::class, function (JobQueued $event) use (&$queued): void {
            $queued[] = $event->id;
        });
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
        $late = new Note('late');
        $late->delay = 60;
        $this->queue->bulk([new Note('a'), $late, new Note('b'), new Note('c')]);
        $stats = Server::redis()->info('commandstats');
        $this->assertStringStartsWith('calls=1,', $stats['cmdstat_dq.msend']);
        $this->assertStringStartsWith('calls=1,', $stats['cmdstat_dq.send']);
        $this->assertSame([3, 1], [$this->queue->pendingSize(), $this->queue->delayedSize()]);
        $jobs = array_map(fn () => $this->queue->pop(), range(1, 3));
        $this->assertSame(['a', 'b', 'c'], array_map(self::nameOf(...), $jobs));
        $this->assertCount(4, array_unique($queued));
        $this->assertContains($jobs[0]->getJobId(), $queued);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobThatIsRetriedByItsPayloadIsAnotherMessage(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Note('a'));
        $job = $this->queue->pop();
        $this->assertSame($job->getJobId(), $this->queue->pushRaw($job->getRawBody()));
        $this->assertSame(2, $this->queue->size());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testPriorityAndGroupsByRawOptions(string $driver): void
    {
        $this->start($driver);
        $this->queue->pushRaw('{"id": "second"}');
        $this->queue->pushRaw('{"id": "first"}', null, ['priority' => -1]);
        $this->assertSame(['first', 'second'], array_map(fn () => $this->queue->pop()->getJobId(), [1, 2]));
        $this->assertNull($this->queue->pop());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testJobsOfAGroupRunOneAfterTheOther(string $driver): void
    {
        $this->start($driver);
        foreach (['a1', 'a2', 'b1'] as $name) {
            $job = new Note($name);
            $job->messageGroup = $name[0];
            $this->queue->push($job);
        }
        $a1 = $this->queue->pop();
        $this->assertSame(['a1', 'b1', null], [self::nameOf($a1), self::nameOf($this->queue->pop()), self::nameOf($this->queue->pop())]);
        $this->assertSame(1, $this->queue->pendingSize());
        $a1->release(); // order holds over a failure
        $a1 = $this->queue->pop();
        $this->assertSame('a1', self::nameOf($a1));
        $a1->delete();
        $this->assertSame('a2', self::nameOf($this->queue->pop()));
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testClearAndSizesOfQueuesThatAreThereAndNot(string $driver): void
    {
        $this->start($driver);
        $sizes = fn (): array => array_map(
            fn ($kind) => $this->queue->{$kind}('q'),
            ['size', 'pendingSize', 'delayedSize', 'reservedSize', 'creationTimeOfOldestPendingJob'],
        );
        $this->assertSame([0, 0, 0, 0, null], $sizes());
        $this->assertSame(0, $this->queue->clear('q'));
        $this->assertNull($this->queue->pop('q'));
        $this->queue->pushOn('q', new Note('a'));
        $this->queue->pushOn('q', new Note('b'));
        $this->queue->laterOn('q', 60, new Note('c'));
        $this->queue->pop('q');
        [$all, $pending, $delayed, $reserved, $oldest] = $sizes();
        $this->assertSame([3, 1, 1, 1], [$all, $pending, $delayed, $reserved]);
        $this->assertEqualsWithDelta(time(), $oldest, 2);
        $this->assertSame(3, $this->queue->clear('q'));
        $this->assertSame(0, $this->queue->size('q'));
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testTheKeyHasThePrefixOfTheConnection(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Note('a'));
        $this->assertSame(['app_dq:default'], Server::redis(4)->keys('*'));
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWaitIsShorterThanTheReadTimeout(string $driver): void
    {
        $this->start($driver, ['block_for' => 0]);
        ini_set('default_socket_timeout', '1');
        try {
            $this->assertNull($this->queue->pop());
        } finally {
            ini_restore('default_socket_timeout');
        }
    }

    // ---- workers -----------------------------------------------------------------------------------------------------

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerAsksAllItsQueuesAtOnce(string $driver): void
    {
        $this->start($driver, ['block_for' => 1, 'ack_with_next' => false]);
        $this->queue->pushOn('low', new Note('l'));
        $this->queue->pushOn('high', new Note('h1'));
        $this->queue->pushOn('high', new Note('h2'));
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
        $this->work('high,mid,low');
        $this->assertSame(['h1 1 high', 'h2 1 high', 'l 1 low'], Note::$seen);
        $this->assertSame([], $this->app->reported);
        $stats = Server::redis()->info('commandstats');
        $this->assertStringStartsWith('calls=4,', $stats['cmdstat_dq.mfetch']);
        $this->assertArrayNotHasKey('cmdstat_dq.fetch', $stats);
        // Outside of a worker's round each queue is asked separately.
        $this->queue->pushOn('low', new Note('x'));
        $this->assertSame('x', self::nameOf($this->queue->pop('low')));
        $this->queue->pushOn('low', new Note('y'));
        $this->assertSame(['y', 'low'], [self::nameOf($job = $this->queue->pop('high,low')), $job->getQueue()]);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWaitingWorkerIsWokenByTheLessImportantQueue(string $driver): void
    {
        $this->start($driver, ['block_for' => 5]);
        $this->queue->laterOn('low', new \DateTimeImmutable('+300 milliseconds'), new Note('a'));
        $start = microtime(true);
        $this->work('high,low', ['maxJobs' => 1]);
        $this->assertSame(['a 1 low'], Note::$seen);
        $this->assertLessThan(4.5, microtime(true) - $start);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobIsTriedAgainAndFailsInTheEnd(string $driver): void
    {
        $this->start($driver);
        $failed = [];
        $this->app->events->listen(JobFailed::class, function (JobFailed $event) use (&$failed): void {
            $failed[] = [$event->job->attempts(), $event->exception->getMessage()];
        });
        $this->queue->push(new Fails());
        $this->work('default', ['maxTries' => 3, 'stopWhenEmpty' => true]);
        $this->assertSame([[3, 'attempt 3']], $failed);
        $this->assertCount(3, $this->app->reported);
        $this->assertSame(0, $this->queue->size());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobIsPushedWhenItsTransactionIsCommitted(string $driver): void
    {
        $this->start($driver, ['after_commit' => true]);
        $transactions = new \Illuminate\Database\DatabaseTransactionsManager();
        $this->app->container->instance('db.transactions', $transactions);
        $transactions->begin('db', 1);
        $this->queue->push(new Note('a'));
        $this->queue->bulk([new Note('b'), new Note('c')]);
        $this->assertSame(0, $this->queue->size());
        $transactions->commit('db', 1, 0);
        $this->assertSame(['a', 'b', 'c'], array_map(fn () => self::nameOf($this->queue->pop()), range(1, 3)));
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testTheHeartbeatKeepsALongJob(string $driver): void
    {
        $this->start($driver, ['retry_after' => 2, 'heartbeat' => true]);
        $this->queue->push(new Note('a'));
        $child = pcntl_fork();
        if ($child === 0) {
            $this->app = new App($driver, ['retry_after' => 2, 'heartbeat' => true]);
            $job = $this->app->queue()->pop();
            Server::redis()->blPop('never', 4);
            $job->delete();
            posix_kill(getmypid(), SIGKILL);
        }
        pcntl_waitpid($child, $status);
        $this->assertSame([0, 1], array_map(fn ($f) => $this->queue->on(null)->info()[$f], ['timeouts', 'acked']));
    }
}
