<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Illuminate\Queue\Events\JobFailed;

/** Messages in the queue of a worker that are no jobs. */
final class NoJobTest extends AppTestCase
{
    private const NO_JOBS = [
        'bytes' => "hello \xff",
        'a number' => '5',
        'a text' => '"x"',
        'a number as name' => '{"job":5,"data":{}}',
        'a list as name' => '{"job":["a"],"data":{}}',
        'a list as time limit' => '{"job":"Nobody@go","data":{},"timeout":[1]}',
        'a list as tries' => '{"job":"Nobody@go","data":{},"maxTries":[1]}',
        'a text as the end of its tries' => '{"job":"Nobody@go","data":{},"retryUntil":"x"}',
        'a map as backoff' => '{"job":"Nobody@go","data":{},"backoff":{}}',
        'a list as id' => '{"job":"Nobody@go","data":{},"id":[1]}',
    ];
    /** Laravel writes these to its table of failed jobs. */
    private const FAILING = [
        'an empty map' => '{}',
        'a list' => '[1]',
        'no class' => '{"job":"Nobody@go","data":{}}',
        'no method' => '{"job":"Dq\\\\Tests\\\\Laravel\\\\Note@nothing","data":{}}',
        'no data' => '{"job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call"}',
        'data that are a text' => '{"job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call","data":"x"}',
        'a cut command' => '{"job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call","data":{"commandName":"x","command":"O:5:\"x"}}',
    ];

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testWhatIsNoJobIsDeadAndEndsNoWorker(string $driver): void
    {
        $this->start($driver);
        $failed = 0;
        $this->app->events->listen(JobFailed::class, function () use (&$failed): void {
            $failed++;
        });
        $all = self::NO_JOBS + self::FAILING;
        foreach ($all as $id => $payload) {
            $this->queue->on(null)->send($payload, ['id' => $id]);
            $this->queue->push(new Note($id));
        }
        $this->work('default', ['maxTries' => 1]);
        $this->assertSame(array_map(fn ($id) => "$id 1 default", array_keys($all)), Note::$seen);
        $dead = array_column(iterator_to_array($this->queue->on(null)->list('dead'), false), 'error', 'id');
        $this->assertSame(array_keys(self::NO_JOBS), array_keys($dead));
        $this->assertStringStartsWith('no job of Laravel: hello', $dead['bytes']);
        $this->assertSame([count(self::FAILING), count($all)], [$failed, count($this->app->reported)]);
        $this->assertSame(0, $this->queue->size());
    }
}
