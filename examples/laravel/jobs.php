#!/usr/bin/env php
<?php
/*
 * Jobs of Laravel on dq: each falls due at its own millisecond, some fail at first, and a worker is killed at its work.
 *
 * The jobs close orders. Workers (Laravel's own, separate processes) wait on the queues `urgent` and `default` at once.
 * Every fifth job throws in its first attempt. The first worker is killed with a job in its hands; the job runs again
 * when retry_after is over.
 *
 * Run it against a server that has the module loaded:
 *
 *     apt-get install php-cli php-redis php-illuminate-{queue,redis,events,bus}
 *     php jobs.php --host=127.0.0.1 --port=6379 --jobs=60 --workers=3
 *
 * In an application of Laravel only three things of this file are needed: the connection `dq` of config/queue.php, the
 * provider, and the jobs. It prints what came out, and the exit code is 1 if a promise was broken.
 */

declare(strict_types=1);

require __DIR__ . '/../../clients/php/autoload.php';
if (is_file(__DIR__ . '/vendor/autoload.php')) {
    require __DIR__ . '/vendor/autoload.php';
} else {
    foreach (['Queue', 'Redis', 'Events', 'Bus'] as $package) {
        require_once "/usr/share/php/Illuminate/$package/autoload.php";
    }
}

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

const RETRY_AFTER = 2;

$options = getopt('', ['host:', 'port:', 'jobs:', 'workers:']) + ['host' => '127.0.0.1', 'port' => '6379', 'jobs' => '60', 'workers' => '3'];
$run = 'example:laravel:' . getmypid();

function now_ms(): int
{
    return (int) (microtime(true) * 1000);
}

/** Closes an order. */
class CloseOrder
{
    use InteractsWithQueue;

    public function __construct(public string $run, public int $order, public int $due)
    {
    }

    public function handle(): void
    {
        $redis = Container::getInstance()['redis']->connection();
        $redis->rpush("$this->run:starts", (string) json_encode([$this->order, $this->due, now_ms(), $this->job->attempts(), getmypid()]));
        usleep(20_000);
        if ($this->order % 5 === 0 && $this->job->attempts() === 1) {
            throw new RuntimeException("order $this->order cannot be closed yet");
        }
        $redis->sadd("$this->run:closed", $this->order);
    }
}

/** Prints nothing: the example makes jobs fail on purpose. */
class Quiet implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        if (!str_contains($e->getMessage(), 'cannot be closed yet')) {
            fwrite(STDERR, "$e\n");
        }
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

/** The parts of an application that queues need. */
function application(array $options): Container
{
    $app = new Container();
    Container::setInstance($app);
    $app->instance(Illuminate\Contracts\Container\Container::class, $app);
    $app->instance('config', new ArrayObject([
        'queue.default' => 'dq',
        'queue.connections.dq' => [
            'driver' => 'dq', 'connection' => 'default', 'queue' => 'default', 'retry_after' => RETRY_AFTER, 'block_for' => 1,
        ],
    ]));
    $app->instance('redis', new Illuminate\Redis\RedisManager($app, 'phpredis', [
        'options' => ['prefix' => 'shop_'],
        'default' => ['host' => $options['host'], 'port' => (int) $options['port'], 'database' => 0],
    ]));
    $events = new Illuminate\Events\Dispatcher($app);
    $app->instance('events', $events);
    $app->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
    $app->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Illuminate\Bus\Dispatcher($app));
    $app->singleton('queue', fn ($app) => new QueueManager($app));
    $provider = new Dq\Laravel\DqServiceProvider($app);
    $provider->register();
    $provider->boot();
    return $app;
}

/** Does what `php artisan queue:work dq --queue=urgent,default --sleep=0 --tries=5` does, in a process of its own. */
function start_worker(array $options, string $queues): int
{
    $child = pcntl_fork();
    if ($child !== 0) {
        return $child;
    }
    $app = application($options);
    $how = new WorkerOptions();
    $how->sleep = 0;
    $how->maxTries = 5;
    (new Worker($app['queue'], $app['events'], new Quiet(), fn () => false))->daemon('dq', $queues, $how);
    exit(0);
}

$names = ["$run:urgent", "$run:default"];
$workers = [];
for ($n = 0; $n < (int) $options['workers']; $n++) {
    $workers[] = start_worker($options, implode(',', $names));
}

$app = application($options);
$queue = $app['queue']->connection();
$redis = $app['redis']->connection();
$jobs = (int) $options['jobs'];
for ($n = 1; $n <= $jobs; $n++) {
    $due = now_ms() + random_int(0, 1500);
    $when = DateTimeImmutable::createFromFormat('U.v', sprintf('%d.%03d', intdiv($due, 1000), $due % 1000));
    $queue->laterOn($names[$n % 2], $when, new CloseOrder($run, $n, $due));
}

// Kill a worker in the middle of a job that would succeed: one that has started a job last, a moment ago.
$killed = null;
$end = microtime(true) + 30;
while ($redis->scard("$run:closed") < $jobs && microtime(true) < $end) {
    $last = json_decode((string) $redis->lindex("$run:starts", -1), true);
    $succeeds = $last !== null && $last[0] % 5 !== 0;
    if ($killed === null && $succeeds && $redis->llen("$run:starts") > $jobs / 3 && now_ms() - $last[2] < 10) {
        posix_kill($last[4], SIGKILL);
        pcntl_waitpid($last[4], $status);
        $workers = array_diff($workers, [$last[4]]);
        $killed = $last[4];
    }
    usleep(2000);
}
foreach ($workers as $worker) {
    posix_kill($worker, SIGTERM);
    pcntl_waitpid($worker, $status);
}

$starts = array_map(fn ($line) => json_decode($line, true), $redis->lrange("$run:starts", 0, -1));
$first = array_filter($starts, fn ($start) => $start[3] === 1);
$lateness = array_map(fn ($start) => $start[2] - $start[1], $first);
sort($lateness);
$early = count(array_filter($lateness, fn ($ms) => $ms < 0));
$left = array_sum(array_map(fn ($name) => $queue->size($name), $names));
printf("jobs sent          %d\n", $jobs);
printf("orders closed      %d\n", $redis->scard("$run:closed"));
printf("jobs that threw    %d\n", count(array_filter($starts, fn ($s) => $s[0] % 5 === 0 && $s[3] === 1)));
printf("workers killed     %d\n", $killed === null ? 0 : 1);
printf("jobs run again     %d\n", count($starts) - $jobs);
printf("started too early  %d\n", $early);
printf("lateness, ms       p50 %d, max %d\n", $lateness[intdiv(count($lateness), 2)] ?? 0, end($lateness));
printf("jobs left          %d\n", $left);
$kept = $redis->scard("$run:closed") === $jobs && $early === 0 && $left === 0 && $killed !== null;
foreach (["$run:closed", "$run:starts"] as $key) {
    $redis->del($key);
}
foreach ($names as $name) {
    $redis->del($queue->getQueue($name));
}
echo $kept ? "all promises kept\n" : "A PROMISE WAS BROKEN\n";
exit($kept ? 0 : 1);
