<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\Symfony\DqReceivedStamp;
use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Dq\Tests\Program;
use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

/** Handlers that end the process of their consumer. */
final class OddEndTest extends TestCase
{
    protected function setUp(): void
    {
        Server::redis()->flushAll();
    }

    private static function dsn(string $options = ''): string
    {
        return sprintf('dq://%s:%d/q?%s', Server::host(), Server::port(), $options);
    }

    private static function transport(string $options = ''): DqTransport
    {
        return (new DqTransportFactory())->createTransport(self::dsn($options), [], new PhpSerializer());
    }

    /** Does the work of messenger:consume for one message, with a handler of this code. */
    private static function consume(string $code, string $options = ''): array
    {
        return Program::run('
            use Symfony\Component\Messenger\Handler\HandlersLocator;
            use Symfony\Component\Messenger\MessageBus;
            use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
            $transport = (new Dq\Symfony\DqTransportFactory())->createTransport("' . self::dsn($options) . '", [],
                new Symfony\Component\Messenger\Transport\Serialization\PhpSerializer());
            $handler = function ($message) { ' . $code . ' };
            $locator = new HandlersLocator([Dq\Tests\Symfony\Text::class => [$handler]]);
            $bus = new MessageBus([new HandleMessageMiddleware($locator)]);
            $events = new Symfony\Component\EventDispatcher\EventDispatcher();
            $events->addSubscriber(new Symfony\Component\Messenger\EventListener\StopWorkerOnMessageLimitListener(1));
            (new Symfony\Component\Messenger\Worker(["async" => $transport], $bus, $events))->run();
        ');
    }

    public function testAMessageWhoseHandlerEndsTheProcessComesBackAtOnceWithTheReason(): void
    {
        $transport = self::transport();
        $transport->send(new Envelope(new Text('a')));
        $this->assertSame(3, self::consume('exit(3);')[0]);
        [$record] = iterator_to_array($transport->queue()->list('ready'));
        $this->assertSame(['the process was ended (exit)', 1, 0], [$record['error'], $record['failures'], $record['timeouts']]);
        $this->assertSame([0, 'a'], self::consume('echo $message->text;'));
        $this->assertSame(0, $transport->queue()->len());
        // A finished message gets no further command.
        $transport->send(new Envelope(new Text('b')));
        $this->assertSame([0, 'b'], self::consume('echo $message->text; register_shutdown_function(fn () => exit(0));'));
        $this->assertSame(0, $transport->queue()->len());
    }

    public function testAHandlerThatEndsItsProcessLeavesTheOthersOfItsFetchAsTheyWere(): void
    {
        $transport = self::transport();
        foreach (['a', 'b'] as $text) {
            $transport->send(new Envelope(new Text($text)));
        }
        [$exit] = Program::run('
            $transport = (new Dq\Symfony\DqTransportFactory())->createTransport("' . self::dsn() . '", [],
                new Symfony\Component\Messenger\Transport\Serialization\PhpSerializer());
            foreach ($transport->get(2) as $envelope) { exit(3); }
        ');
        $this->assertSame(3, $exit);
        $ready = iterator_to_array($transport->queue()->list('ready'), false);
        $counts = array_map(fn ($record) => [$record['attempt'], $record['failures']], $ready);
        sort($counts);
        $this->assertSame([[0, 0], [1, 1]], $counts);
    }

    public function testAMessageThatKillsItsConsumersIsDeadAfterThree(): void
    {
        // The other messages keep the default, so that nothing depends on how fast a process begins.
        $short = 'redeliver_timeout=1';
        $transport = self::transport($short);
        $transport->send(new Envelope(new Text('killer')));
        for ($n = 1; $n <= 3; $n++) {
            $this->assertSame(128 + SIGKILL, self::consume('posix_kill(getmypid(), SIGKILL);', $short)[0]);
            Server::until(fn () => $transport->queue()->len('running') === 0, 'the end of the lease');
        }
        $transport->send(new Envelope(new Text('next')));
        $this->assertSame([0, 'next'], self::consume('echo $message->text;', $short));
        [$record] = iterator_to_array($transport->queue()->list('dead'));
        $this->assertSame(['given up: 3 consumers were lost with it', 'rejected'], [$record['error'], $record['reason']]);
    }

    public function testAMessageNeedsNothingThatItsQueueHasLost(): void
    {
        $losses = [fn () => Server::redis()->flushAll(), fn () => Server::redis()->del('q')];
        foreach ($losses as $n => $lose) {
            // Another limit holds from the next start.
            $limit = 2 - $n;
            $transport = self::transport("lost_workers=$limit");
            $transport->setup();
            $transport->send(new Envelope(new Text('lost')));
            $lose();
            $transport->send(new Envelope(new Text('killer')));
            [$record] = iterator_to_array($transport->queue()->list('ready'), false);
            $this->assertSame(-1, $record['retries-left']);
            for ($lost = 0; $lost < $limit; $lost++) {
                [$envelope] = $transport->get();
                $transport->queue()->touch(1, $envelope->last(DqReceivedStamp::class)->receipt);
                Server::until(fn () => $transport->queue()->len('running') === 0, 'the end of the lease');
            }
            $this->assertSame([], $transport->get());
            $this->assertSame([0, 1], [$transport->getMessageCount(), $transport->queue()->len('dead')]);
        }
    }

    public function testTheLimitOfLostConsumersIsAnOption(): void
    {
        foreach ([['lost_workers=1', 1], ['lost_workers=0', 6]] as [$option, $deliveries]) {
            $this->setUp();
            $transport = self::transport($option);
            $transport->send(new Envelope(new Text('a')));
            for ($n = 1; $n <= $deliveries; $n++) {
                $this->assertCount(1, $transport->get());
                $transport->queue()->nack($transport->queue()->get(iterator_to_array($transport->queue()->list('running'))[0]['id'])['receipt']);
            }
            $this->assertCount($option === 'lost_workers=0' ? 1 : 0, $transport->get());
        }
    }
}
