<?php

// Dq\Worker over phpredis. At a concurrency of n it takes n messages in one FETCH, and handles them one by one.

declare(strict_types=1);

require __DIR__ . '/Job.php';
require __DIR__ . '/../../../clients/php/autoload.php';

use Bench\Job;

$queue = Dq\Queue::connect('redis://127.0.0.1:' . Job::setting('PORT'), 'jobs');
if ($argv[1] === 'send') {
    Job::send(static fn (string $payload, int $delay) => $queue->send($payload, $delay > 0 ? ['delay' => $delay] : []));
} else {
    $handle = static fn (Dq\Message $message) => Job::handle($message->payload);
    (new Dq\Worker($queue, $handle, count: Job::setting('CONCURRENCY', 1)))->run();
}
