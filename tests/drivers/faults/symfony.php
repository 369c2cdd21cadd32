<?php

/** The loop of Symfony's messenger:consume. */

declare(strict_types=1);

require getenv('FAULTS_PHP') . '/tests/bootstrap.php';

use Dq\Tests\Symfony\Text;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

$plain = new class () implements SerializerInterface {
    public function decode(array $encoded): Envelope
    {
        return new Envelope(new Text($encoded['body']));
    }

    public function encode(Envelope $envelope): array
    {
        return ['body' => $envelope->getMessage()->text];
    }
};
$lease = intdiv((int) getenv('FAULTS_LEASE'), 1000);
$dsn = str_replace('redis://', 'dq://', getenv('FAULTS_URL')) . "/work?block=1000&patience=15&redeliver_timeout=$lease";
$transport = (new Dq\Symfony\DqTransportFactory())->createTransport($dsn, [], $plain);
$handler = function (Text $message) use ($transport): void {
    $note = fn (string ...$words) => file_put_contents(getenv('FAULTS_LOG'), implode(' ', $words) . "\n", FILE_APPEND);
    [$id, $seconds] = json_decode($message->text);
    $note('begin', $id);
    for ($end = microtime(true) + $seconds; microtime(true) < $end;) {
        usleep(10_000);
    }
    $note('end', $id);
};
$bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Text::class => [$handler]]))]);
$worker = new Symfony\Component\Messenger\Worker(['async' => $transport], $bus, new Symfony\Component\EventDispatcher\EventDispatcher());
pcntl_async_signals(true);
pcntl_signal(SIGTERM, fn () => $worker->stop());
$worker->run(['sleep' => 0]);
