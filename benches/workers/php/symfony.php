<?php

// Symfony Messenger with its Redis transport, as `messenger:consume` runs it. Messages that are done are deleted.

declare(strict_types=1);

require __DIR__ . '/Job.php';
foreach (['Messenger', 'EventDispatcher'] as $part) {
    require_once "/usr/share/php/Symfony/Component/$part/autoload.php";
}
require_once '/usr/share/php/Symfony/Component/Messenger/Bridge/Redis/autoload.php';

use Bench\Job;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

final class Run
{
    public function __construct(public string $payload)
    {
    }
}

$dsn = 'redis://127.0.0.1:' . Job::setting('PORT') . '/jobs';
$transport = (new RedisTransportFactory())->createTransport($dsn, ['delete_after_ack' => true], new PhpSerializer());
if ($argv[1] === 'send') {
    Job::send(static fn (string $payload, int $delay) => $transport->send(
        new Envelope(new Run($payload), $delay > 0 ? [new DelayStamp($delay)] : [])
    ));
} else {
    $handlers = [Run::class => [static fn (Run $job) => Job::handle($job->payload)]];
    $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator($handlers))]);
    (new Worker(['jobs' => $transport], $bus, new EventDispatcher()))->run();
}
