<?php
/*
 * The application of Laravel: php laravel.php DRIVER PORT TASK_LOG-PORT RETRY-AFTER send|work [NAME]
 *
 * `send` reads a line of JSON for each job, [kind, args, due, queue], and answers each with a line. `work` is what
 * `php artisan queue:work --queue=high,low --sleep=0` does.
 */

declare(strict_types=1);

require __DIR__ . '/../../clients/php/autoload.php';
foreach (['Queue', 'Redis', 'Events', 'Bus'] as $package) {
    require_once "/usr/share/php/Illuminate/$package/autoload.php";
}

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Queue\Events\JobProcessing;
use Illuminate\Queue\Events\WorkerStopping;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

[, $driver, $port, $logPort, $retryAfter, $what] = $argv;
define('WORKER', $argv[6] ?? '-');
define('TASK_LOG', (int) $logPort);

function writeDown(string $what, string $task, string $worker = WORKER): void
{
    static $redis = null;
    if ($redis === null) {
        $redis = new Redis();
        $redis->connect('127.0.0.1', TASK_LOG);
    }
    $redis->rpush('task_log', sprintf('%s %s %.6f %s', $what, $task, microtime(true), $worker));
}

class Job
{
    use InteractsWithQueue;

    /** The task that has ended last, until the worker has its ack. */
    public static ?string $unacked = null;

    public function __construct(public string $kind, public array $args)
    {
    }

    public function handle(): void
    {
        if ($this->kind === 'work') {
            writeDown('start', $this->args[0]);
            usleep((int) ($this->args[1] * 1e6));
            writeDown('end', $this->args[0]);
            self::$unacked = $this->args[0];
        } elseif ($this->kind === 'late') {
            writeDown('late', $this->args[0], (string) ((microtime(true) - $this->args[1]) * 1000));
        }
    }
}

class Loud implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, "$e\n");
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
$app->instance(Illuminate\Contracts\Container\Container::class, $app);
// No job is given up for the workers that it has lost, because they are killed on purpose.
$connection = ['driver' => $driver, 'connection' => 'default', 'queue' => 'low', 'retry_after' => (int) $retryAfter, 'block_for' => 5, 'lost_workers' => 0];
$app->instance('config', new ArrayObject(['queue.default' => 'bench', 'queue.connections.bench' => $connection]));
$app->instance('redis', new Illuminate\Redis\RedisManager($app, 'phpredis', [
    'options' => ['prefix' => ''],
    'default' => ['host' => '127.0.0.1', 'port' => (int) $port, 'database' => 0],
]));
$events = new Illuminate\Events\Dispatcher($app);
$app->instance('events', $events);
$app->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
$app->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Illuminate\Bus\Dispatcher($app));
$app->singleton('queue', fn ($app) => new QueueManager($app));
$app['queue']->addConnector('redis', fn () => new Illuminate\Queue\Connectors\RedisConnector($app['redis']));
$provider = new Dq\Laravel\DqServiceProvider($app);
$provider->register();
$provider->boot();

if ($what === 'work') {
    // With both drivers a job is acked before the next one begins, or before the worker stops.
    $events->listen([JobProcessing::class, WorkerStopping::class], function (): void {
        if (Job::$unacked !== null) {
            writeDown('ack', Job::$unacked);
            Job::$unacked = null;
        }
    });
    $how = new WorkerOptions();
    $how->sleep = 0;
    $how->maxTries = 0;
    $how->memory = 1024;
    exit((new Worker($app['queue'], $app['events'], new Loud(), fn () => false))->daemon('bench', 'high,low', $how));
}

$queue = $app['queue']->connection();
while (($line = fgets(STDIN)) !== false) {
    [$kind, $args, $due, $name] = json_decode($line, true);
    if ($due === null) {
        $queue->pushOn($name, new Job($kind, $args));
    } else {
        $when = DateTimeImmutable::createFromFormat('U.u', sprintf('%.6f', $due));
        $queue->laterOn($name, $when, new Job($kind, $args));
    }
    echo "sent\n";
    flush();
}
