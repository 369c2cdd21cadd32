<?php

/** A worker of clients/php, over phpredis. */

declare(strict_types=1);

require getenv('FAULTS_PHP') . '/autoload.php';

$note = fn (string ...$words) => file_put_contents(getenv('FAULTS_LOG'), implode(' ', $words) . "\n", FILE_APPEND);
$handle = function (Dq\Message $message) use ($note): void {
    [$id, $seconds] = $message->json();
    $note('begin', $id);
    // A signal ends a sleep early.
    for ($end = microtime(true) + $seconds; microtime(true) < $end;) {
        usleep(10_000);
    }
    $note('end', $id);
};
(new Dq\Worker(Dq\Queue::connect(getenv('FAULTS_URL'), 'work'), $handle, lease: (int) getenv('FAULTS_LEASE')))->run();
