<?php

/** Both sides: Laravel's queue on Redis and on dq. laravel.php WHAT [WORDS]. The server is DQ_TEST_URL. */

declare(strict_types=1);

require getenv('TAKEOVER_PHP') . '/tests/bootstrap.php';

class Work
{
    public function __construct(public int $n)
    {
    }

    public function handle(): void
    {
        file_put_contents(getenv('TAKEOVER_LOG'), "$this->n\n", FILE_APPEND);
    }
}

$app = new Dq\Tests\Laravel\App('phpredis');
$queues = $app->container['queue'];
$queues->addConnector('redis', fn () => new Illuminate\Queue\Connectors\RedisConnector($app->container['redis']));
$app->container['config']['queue.connections.redis'] = ['driver' => 'redis', 'queue' => 'default', 'connection' => 'default', 'retry_after' => 1];
[$what, $word] = [$argv[1], $argv[2] ?? ''];
if ($what === 'fill') {
    $old = $queues->connection('redis');
    foreach (range(0, 9) as $n) {
        $old->push(new Work($n));
    }
    foreach (range(20, 24) as $n) {
        $old->later((int) $word, new Work($n));
    }
    $old->later(40 * 86400, new Work(30));
} elseif ($what === 'reserve') {
    // The worker dies with its job.
    $queues->connection('redis')->pop('default');
} elseif ($what === 'work') {
    $worker = $app->worker();
    $options = new Illuminate\Queue\WorkerOptions();
    $options->sleep = 0;
    $options->maxTries = 5;
    for ($end = microtime(true) + 20; microtime(true) < $end && count(@file(getenv('TAKEOVER_LOG')) ?: []) < (int) $word;) {
        $worker->runNextJob('dq', 'default', $options);
        usleep(2000);
    }
    array_map(fn ($error) => fwrite(STDERR, "$error\n"), $app->reported);
}
