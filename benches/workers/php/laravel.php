<?php

// Laravel's queue with its Redis driver, as `queue:work` runs it. With block_for a worker waits for jobs at the server, and
// looks for delayed ones once a second: without it, it sleeps for three seconds.

declare(strict_types=1);

require __DIR__ . '/Job.php';
foreach (['Queue', 'Redis', 'Events', 'Bus'] as $part) {
    require_once "/usr/share/php/Illuminate/$part/autoload.php";
}

use Bench\Job;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Connectors\RedisConnector;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Illuminate\Redis\RedisManager;

final class Run
{
    public function fire($job, array $data): void
    {
        Job::handle($data['payload']);
        $job->delete();
    }
}

final class Errors implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, (string) $e);
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
    }

    public function renderForConsole($output, Throwable $e)
    {
    }
}

$app = new Container();
Container::setInstance($app);
$app->instance('config', new ArrayObject([
    'queue.default' => 'redis',
    'queue.connections.redis' => ['driver' => 'redis', 'queue' => 'default', 'retry_after' => 90, 'block_for' => 1],
]));
$app->instance('redis', new RedisManager($app, 'phpredis', [
    'default' => ['host' => '127.0.0.1', 'port' => Job::setting('PORT'), 'database' => 0],
]));
$events = new Dispatcher($app);
$manager = new QueueManager($app);
$manager->addConnector('redis', fn () => new RedisConnector($app['redis']));

if ($argv[1] === 'send') {
    $queue = $manager->connection();
    Job::send(static function (string $payload, int $delay) use ($queue): void {
        $data = ['payload' => $payload];
        // Laravel knows whole seconds. The one that a job is due in is rounded up, so that none is early.
        $due = DateTimeImmutable::createFromFormat('U.u', sprintf('%.6F', ceil(microtime(true) + $delay / 1000)));
        $delay > 0 ? $queue->later($due, Run::class, $data) : $queue->push(Run::class, $data);
    });
} else {
    $worker = new Worker($manager, $events, new Errors(), static fn () => false);
    $worker->daemon('redis', 'default', new WorkerOptions());
}
