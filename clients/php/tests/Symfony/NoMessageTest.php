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
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

/** Messages in the queue of a worker that no sender of Messenger has written. */
final class NoMessageTest extends TestCase
{
    private static function noMessages(): array
    {
        $all = [
            'bytes' => "hello \xff",
            'JSON' => '{"a":1}',
            'a number' => serialize(5),
            'a text' => serialize('x'),
            'null' => serialize(null),
            'false' => serialize(false),
            'another object' => serialize(new \ArrayObject([1])),
            'a message alone' => serialize(new Text('x')),
            'a cut one' => substr(serialize(new Envelope(new Text('x'))), 0, 80),
            'a class that is not here' => 'O:6:"Nobody":0:{}',
            'an envelope of nothing' => str_replace('"x"', '"x"', 'O:36:"Symfony\\Component\\Messenger\\Envelope":0:{}'),
            'an envelope of a number' => "O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{s:44:\"\0Symfony\\Component\\Messenger\\Envelope\0stamps\";i:5;s:45:\"\0Symfony\\Component\\Messenger\\Envelope\0message\";i:5;}",
        ];
        // Messenger escapes what it has serialized.
        return array_map('addslashes', $all);
    }

    public function testWhatIsNoMessageIsDeadAndMetOnce(): void
    {
        Server::redis()->flushAll();
        $dsn = sprintf('dq://%s:%d/q', Server::host(), Server::port());
        $transport = (new DqTransportFactory())->createTransport($dsn, [], new PhpSerializer());
        $seen = [];
        $handler = function (Text $text) use (&$seen): void {
            $seen[] = $text->text;
        };
        $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Text::class => [$handler]]))]);
        foreach (self::noMessages() as $id => $payload) {
            $transport->queue()->send($payload, ['id' => $id]);
            $transport->send(new Envelope(new Text($id)));
            try {
                self::work($transport, $bus);
                $this->fail("$id was decoded");
            } catch (MessageDecodingFailedException) {
                // Messenger ends a worker at such a message. The next one does not meet it any more.
                self::work($transport, $bus);
            }
            $this->assertStringStartsWith('not decoded: ', $transport->queue()->get($id)['error']);
        }
        $this->assertSame(array_keys(self::noMessages()), $seen);
        $this->assertSame([0, count($seen)], [$transport->getMessageCount(), $transport->queue()->len('dead')]);
    }

    private static function work(DqTransport $transport, MessageBus $bus): void
    {
        $events = new EventDispatcher();
        $events->addSubscriber(new StopWorkerOnMessageLimitListener(1));
        (new Worker(['dq' => $transport], $bus, $events))->run(['sleep' => 0]);
    }
}
