<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Laravel\LostWorkersException;
use Dq\Tests\Program;
use Dq\Tests\Server;
use Illuminate\Queue\Events\JobFailed;

/** Jobs that end the process of their worker. */
final class OddEndTest extends AppTestCase
{
    /** Does the work of `queue:work` in a process of its own. Returns its exit code and what it printed. */
    private static function workElsewhere(string $driver, int $retryAfter = 60): array
    {
        return Program::run(
            '$app = new Dq\Tests\Laravel\App("' . $driver . '", ["retry_after" => ' . $retryAfter . ']);
            $options = new Illuminate\Queue\WorkerOptions();
            $options->sleep = 0;
            $options->stopWhenEmpty = true;
            $options->maxTries = 0;
            $app->worker()->daemon("dq", "default", $options);',
            ['memory_limit' => '64M'],
        );
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobThatEndsItsProcessComesBackAtOnceWithTheReason(string $driver): void
    {
        foreach (['exit' => [3, 'the process was ended (exit)'], 'memory' => [255, 'fatal error: Allowed memory size']] as $how => [$exit, $error]) {
            $this->setUp();
            $this->start($driver);
            $this->queue->push(new Ends($how));
            $this->assertSame([$exit, '1'], self::workElsewhere($driver));
            [$record] = iterator_to_array($this->queue->on(null)->list('ready'));
            $this->assertStringStartsWith($error, $record['error']);
            $this->assertSame([1, 0], [$record['failures'], $record['timeouts']]);
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobThatKillsItsWorkersHasFailedAfterThree(string $driver): void
    {
        $this->start($driver, ['retry_after' => 1]);
        $this->queue->push(new Ends('killed'));
        for ($n = 1; $n <= 3; $n++) {
            $this->assertSame([128 + SIGKILL, "$n"], self::workElsewhere($driver, 1));
            Server::until(fn () => $this->queue->reservedSize() === 0, 'the end of the lease');
        }
        $this->queue->push(new Note('next'));
        $failed = [];
        $this->app->events->listen(JobFailed::class, function (JobFailed $event) use (&$failed): void {
            $failed[] = $event->exception;
        });
        $this->work('default', ['maxTries' => 0]);
        $this->assertSame(['next 1 default'], Note::$seen);
        $this->assertCount(1, $failed);
        $this->assertInstanceOf(LostWorkersException::class, $failed[0]);
        $this->assertStringContainsString(Ends::class . ': given up: 3 workers were lost', $failed[0]->getMessage());
        $this->assertSame(0, $this->queue->size());
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobNeedsNothingThatItsQueueHasLost(string $driver): void
    {
        $losses = [
            fn () => Server::redis()->flushAll(),
            fn () => $this->queue->getConnection()->command('del', [$this->queue->getQueue(null)]),
        ];
        foreach ($losses as $n => $lose) {
            // Another limit holds from the next start.
            $limit = 2 - $n;
            $this->start($driver, ['lost_workers' => $limit]);
            $this->queue->push(new Note('lost'));
            $lose();
            $this->assertSame(0, $this->queue->size());
            $this->queue->push(new Note('killer'));
            [$record] = iterator_to_array($this->queue->on(null)->list('ready'), false);
            $this->assertSame(-1, $record['retries-left']);
            for ($lost = 0; $lost < $limit; $lost++) {
                $job = $this->queue->pop();
                $this->assertNotNull($job);
                $this->queue->extend($job->message(), 1);
                Server::until(fn () => $this->queue->reservedSize() === 0, 'the end of the lease');
            }
            $this->work('default', ['maxTries' => 0]);
            $this->assertSame([[], 0], [Note::$seen, $this->queue->size()]);
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobThatIsOnlyReleasedIsNotGivenUp(string $driver): void
    {
        $this->start($driver, ['lost_workers' => 2]);
        $this->queue->push(new Note('a'));
        for ($n = 1; $n <= 6; $n++) {
            $this->queue->pop()->release();
        }
        $this->work('default', ['maxTries' => 0]);
        $this->assertSame(['a 7 default'], Note::$seen);
    }
}
