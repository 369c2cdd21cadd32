<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\EventListener\StopWorkerOnMessageLimitListener;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

/** The changes that a handler makes in the same step as the ack of its message. */
final class EffectsTest extends TestCase
{
    public function testTheEffectsOfAHandlerGoWithTheAckAndOnlyWithThat(): void
    {
        $redis = Server::redis();
        $redis->flushAll();
        $dsn = sprintf('dq://%s:%d/q', Server::host(), Server::port());
        $transport = (new DqTransportFactory())->createTransport($dsn, [], new PhpSerializer());
        $handler = function (Text $message) use ($transport): void {
            $effects = DqTransport::effects()->incrby('paid', 5);
            match ($message->text) {
                'fails' => throw new \RuntimeException('no'),
                'is refused' => $effects->ifMissing('paid'),
                'is lost' => $transport->queue()->cancel($transport->queue()->list('running')->current()['id']),
                'returns' => null,
            };
        };
        $ends = ['returns', 'fails', 'is refused', 'is lost'];
        foreach ($ends as $end) {
            $transport->send(new Envelope(new Text($end)));
        }
        $events = new EventDispatcher();
        $events->addSubscriber(new StopWorkerOnMessageLimitListener(count($ends)));
        $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Text::class => [$handler]]))]);
        (new Worker(['async' => $transport], $bus, $events))->run();
        $this->assertSame('5', $redis->get('paid'));
        $this->assertSame(0, $transport->getMessageCount());
        [$dead] = iterator_to_array($transport->queue()->list('dead'), false);
        $this->assertStringStartsWith('its effects were refused: CONDITION 1', $dead['error']);
        $this->expectException(LogicException::class);
        DqTransport::effects();
    }
}
