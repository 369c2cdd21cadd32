<?php

/** The loop of Laravel's `queue:work`, over phpredis or Predis (FAULTS_LIBRARY). */

declare(strict_types=1);

putenv('DQ_TEST_URL=' . getenv('FAULTS_URL'));
require getenv('FAULTS_PHP') . '/tests/bootstrap.php';

class Work
{
    public string $id;
    public float $seconds;

    public function handle(): void
    {
        $note = fn (string ...$words) => file_put_contents(getenv('FAULTS_LOG'), implode(' ', $words) . "\n", FILE_APPEND);
        $note('begin', $this->id);
        for ($end = microtime(true) + $this->seconds; microtime(true) < $end;) {
            usleep(10_000);
        }
        $note('end', $this->id);
    }
}

$app = new Dq\Tests\Laravel\App(getenv('FAULTS_LIBRARY'), [
    'retry_after' => intdiv((int) getenv('FAULTS_LEASE'), 1000),
    'block_for' => 2,
    'heartbeat' => true,
]);
$options = new Illuminate\Queue\WorkerOptions();
$options->sleep = 0;
$options->maxTries = 0;
$worker = $app->worker();
$app->container->instance('queue.worker', $worker);
$worker->daemon('dq', 'default', $options);
