<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\Client;
use Dq\ConnectionError;
use Dq\Symfony\DqReceivedStamp;
use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Dq\Symfony\Settings;
use Dq\Tests\Server;
use Dq\UrlClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\EventListener\StopWorkerOnMessageLimitListener;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

/** A consumer continues over a new connection, whenever the old one is cut. */
final class LostConnectionTest extends TestCase
{
    protected function setUp(): void
    {
        Server::redis()->flushAll();
    }

    private static function dsn(string $rest): string
    {
        return sprintf('dq://%s:%d/%s', Server::host(), Server::port(), $rest);
    }

    private static function transport(string $rest = 'q'): DqTransport
    {
        return (new DqTransportFactory())->createTransport(self::dsn($rest), [], new PhpSerializer());
    }

    /** Cuts all connections. */
    private static function cut(): void
    {
        Server::redis()->rawCommand('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    }

    /** A transport that loses the first reply to this command, which the server has run. */
    private static function losing(string $command): DqTransport
    {
        $settings = Settings::of(self::dsn('q'), []);
        $client = new class (new UrlClient($settings->url), $command) implements Client {
            private bool $lost = false;

            public function __construct(private Client $real, private string $command)
            {
            }

            public function call(string $key, array $words, bool $waits = false): mixed
            {
                $reply = $this->real->call($key, $words, $waits);
                if ($words[0] === $this->command && !$this->lost) {
                    $this->lost = true;
                    throw new ConnectionError('lost');
                }
                return $reply;
            }

            public function readTimeout(): float
            {
                return 10.0;
            }
        };
        return new DqTransport($client, $settings);
    }

    public function testAConnectionThatIsCutWhileIdleIsMadeAnewByGet(): void
    {
        $transport = self::transport();
        $this->assertSame([], $transport->get());
        $transport->send(new Envelope(new Text('a')));
        self::cut();
        $this->assertCount(1, $transport->get());
    }

    public function testAMessageWhoseLeaseMayNotBeRenewedIsGivenAllTheSame(): void
    {
        $transport = self::transport('q?block=2000&redeliver_timeout=1');
        // It comes when so much of a lease has gone by that it would be renewed.
        $transport->send(new Envelope(new Text('a'), [new DelayStamp(500)]));
        Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '-dq.touch');
        try {
            $this->assertCount(1, $transport->get());
        } finally {
            Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '+@all');
        }
    }

    public function testAConnectionThatIsCutWhileGetWaitsIsMadeAnew(): void
    {
        $transport = self::transport('q?block=5000');
        $child = pcntl_fork();
        if ($child === 0) {
            $redis = Server::redis();
            Server::until(fn () => $redis->info('clients')['blocked_clients'] > 0, 'a waiting consumer');
            self::cut();
            self::transport()->send(new Envelope(new Text('a')));
            posix_kill(getmypid(), SIGKILL);
        }
        $this->assertCount(1, $transport->get());
        pcntl_waitpid($child, $status);
    }

    public function testAConnectionThatIsCutWhileAHandlerRunsIsMadeAnewByAckAndRejectAndKeepalive(): void
    {
        $transport = self::transport();
        foreach (['ack', 'reject'] as $verb) {
            $transport->send(new Envelope(new Text($verb)));
            [$envelope] = $transport->get();
            self::cut();
            $transport->keepalive($envelope, 500);
            $id = $envelope->last(DqReceivedStamp::class)->id;
            $until = $transport->queue()->get($id)['lease-until'];
            $this->assertEqualsWithDelta(microtime(true) * 1000 + 500_000, $until, 5000);
            self::cut();
            $transport->$verb($envelope);
            $this->assertSame(0, $transport->queue()->len());
        }
    }

    public function testAWorkerWhoseConnectionIsCutByEachHandlerHandlesEachMessageOnce(): void
    {
        $transport = self::transport('q?block=500');
        foreach (['a', 'b', 'c'] as $text) {
            $transport->send(new Envelope(new Text($text)));
        }
        $seen = [];
        $handler = function (Text $message) use (&$seen): void {
            $seen[] = $message->text;
            self::cut();
        };
        $events = new EventDispatcher();
        $events->addSubscriber(new StopWorkerOnMessageLimitListener(3));
        $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Text::class => [$handler]]))]);
        (new Worker(['async' => $transport], $bus, $events))->run();
        $this->assertSame([['a', 'b', 'c'], 0], [$seen, $transport->queue()->len()]);
    }

    public function testTheMessageOfALostReplyIsReceivedAtOnceAndNotCountedAgain(): void
    {
        $transport = self::losing('DQ.FETCH');
        $transport->send(new Envelope(new Text('a')));
        [$envelope] = $transport->get();
        $this->assertSame(1, $envelope->last(DqReceivedStamp::class)->attempt);
        $transport = self::losing('DQ.MFETCH');
        $transport->send(new Envelope(new Text('b')));
        [$envelope] = $transport->getFromQueues(['high', 'q']);
        $this->assertSame(['b', 1], [$envelope->getMessage()->text, $envelope->last(DqReceivedStamp::class)->attempt]);
    }

    public function testAnAckWhoseReplyIsLostIsRepeatedWithoutHarm(): void
    {
        $transport = self::losing('DQ.ACK');
        $transport->send(new Envelope(new Text('a')));
        [$envelope] = $transport->get();
        $transport->ack($envelope);
        $this->assertSame([0, 1], [$transport->queue()->len(), $transport->queue()->info()['acked']]);
    }

    public function testAServerThatStaysAwayIsATransportExceptionWhenThePatienceIsOver(): void
    {
        $nobody = new DqTransport(new UrlClient('redis://127.0.0.1:1'), Settings::of('dq://127.0.0.1:1/q?patience=0.3', []));
        $start = microtime(true);
        try {
            $nobody->get();
            $this->fail('no error');
        } catch (TransportException) {
            $this->assertEqualsWithDelta(0.25, microtime(true) - $start, 0.2);
        }
    }
}
