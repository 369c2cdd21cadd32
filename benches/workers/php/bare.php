<?php

// The ceiling of PHP: a loop over phpredis that only fetches and acks, COUNT at a time.

declare(strict_types=1);

require __DIR__ . '/Job.php';

use Bench\Job;

$redis = new Redis();
$redis->connect('127.0.0.1', Job::setting('PORT'));
$count = Job::setting('CONCURRENCY', 1);
$acks = [];
while (true) {
    $batch = $redis->rawCommand('DQ.FETCH', 'jobs', 'COUNT', $count, 'BLOCK', 2000, ...$acks) ?: [];
    foreach ($batch as [, , , $payload]) {
        Job::arrived($payload);
    }
    $acks = $batch === [] ? [] : ['ACK', count($batch), ...array_column($batch, 1)];
}
