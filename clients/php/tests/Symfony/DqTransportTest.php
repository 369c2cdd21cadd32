<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\ConnectionError;
use Dq\Symfony\DqReceivedStamp;
use Dq\Symfony\DqStamp;
use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;
use Symfony\Component\Messenger\EventListener\StopWorkerOnMessageLimitListener;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\RedeliveryStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Worker;

final class DqTransportTest extends TestCase
{
    protected function setUp(): void
    {
        Server::redis()->flushAll();
    }

    private static function dsn(string $rest): string
    {
        return sprintf('dq://%s:%d/%s', Server::host(), Server::port(), $rest);
    }

    private static function transport(string $rest = 'q', array $options = [], ?SerializerInterface $serializer = null): DqTransport
    {
        return (new DqTransportFactory())->createTransport(self::dsn($rest), $options, $serializer ?? new PhpSerializer());
    }

    /** @param iterable<Envelope> $envelopes */
    private static function texts(iterable $envelopes): array
    {
        return array_map(
            fn (Envelope $envelope) => $envelope->getMessage()->text,
            is_array($envelopes) ? $envelopes : iterator_to_array($envelopes, false),
        );
    }

    private static function idOf(Envelope $envelope): string
    {
        return $envelope->last(TransportMessageIdStamp::class)->getId();
    }

    public function testSendAndGetAndAck(): void
    {
        $transport = self::transport();
        $this->assertSame([], $transport->get());
        $sent = $transport->send(new Envelope(new Text("Hi \xff\0")));
        $transport->send(new Envelope(new Text('Bye')));
        $this->assertSame(2, $transport->getMessageCount());
        [$envelope] = $transport->get();
        $this->assertSame("Hi \xff\0", $envelope->getMessage()->text);
        $this->assertSame(self::idOf($sent), self::idOf($envelope));
        $stamp = $envelope->last(DqReceivedStamp::class);
        $this->assertSame([self::idOf($sent), 'q', 1], [$stamp->id, $stamp->queue, $stamp->attempt]);
        $this->assertSame(1, $transport->getMessageCount());
        $transport->ack($envelope);
        $this->assertSame(1, $transport->queue()->len());
        [$second] = $transport->get();
        $transport->reject($second);
        $this->assertSame([0, 0], [$transport->queue()->len(), $transport->queue()->info()['dead']]);
        $transport->ack($second); // stale: nothing happens
    }

    public function testBodyHeadersAndTypeAreThoseOfTheMessage(): void
    {
        $serializer = $this->createMock(SerializerInterface::class);
        $encoded = ['body' => "\xb1\x31", 'headers' => ['type' => 'x', 'n' => 7]];
        $serializer->method('encode')->willReturn($encoded);
        $serializer->expects($this->once())->method('decode')
            ->with(['body' => "\xb1\x31", 'headers' => ['type' => 'x', 'n' => '7']])
            ->willReturn(new Envelope(new Text('decoded'), [new TransportMessageIdStamp('of another transport')]));
        $transport = self::transport('q', [], $serializer);
        $id = self::idOf($transport->send(new Envelope(new Text(''))));
        $record = $transport->queue()->get($id);
        $this->assertSame(["\xb1\x31", ['type' => 'x', 'n' => '7'], Text::class, -1], array_map(
            fn ($field) => $record[$field],
            ['payload', 'headers', 'type', 'retries-left'],
        ));
        [$envelope] = $transport->get();
        $this->assertSame('decoded', $envelope->getMessage()->text);
        $this->assertSame([$id], array_map(fn ($stamp) => $stamp->getId(), $envelope->all(TransportMessageIdStamp::class)));
    }

    public function testADelayedMessageEndsAWaitInTheMillisecond(): void
    {
        $transport = self::transport('q?block=5000');
        $transport->send(new Envelope(new Text('late'), [new DelayStamp(400)]));
        $transport->send(new Envelope(new Text('now'), [new DelayStamp(-5)]));
        $this->assertSame(['now'], self::texts($transport->get()));
        $this->assertSame(['late'], self::texts($envelopes = $transport->get()));
        $record = $transport->queue()->get(self::idOf($envelopes[0]));
        $this->assertSame(400, $record['due-at'] - $record['sent-at']);
        $this->assertLessThan(2000, $record['started-at'] - $record['due-at']);
    }

    public function testAMessageOfALostConsumerIsRedelivered(): void
    {
        $lost = self::transport('q', ['redeliver_timeout' => 1, 'consumer' => 'lost', 'claim_interval' => 5]);
        $lost->send(new Envelope(new Text('a')));
        [$first] = $lost->get();
        $this->assertSame('lost', $lost->queue()->consumers()[0]['name']);
        $other = self::transport('q?block=4000');
        [$second] = $other->get();
        $this->assertSame(2, $second->last(DqReceivedStamp::class)->attempt);
        $lost->ack($first);
        $this->assertSame(1, $other->queue()->len());
        $other->ack($second);
        $this->assertSame(0, $other->queue()->len());
    }

    public function testKeepalive(): void
    {
        $transport = self::transport('q', ['redeliver_timeout' => 60]);
        $transport->send(new Envelope(new Text('a')));
        [$envelope] = $transport->get();
        $until = fn (): int => $transport->queue()->get(self::idOf($envelope))['lease-until'] - (int) (microtime(true) * 1000);
        $transport->keepalive($envelope, 500);
        $this->assertEqualsWithDelta(500_000, $until(), 5000);
        $transport->keepalive($envelope);
        $this->assertEqualsWithDelta(60_000, $until(), 5000);
    }

    public function testListAndFind(): void
    {
        $transport = self::transport();
        $this->assertSame([[], 0, null], [self::texts($transport->all()), $transport->getMessageCount(), $transport->find('x')]);
        $ids = [];
        for ($n = 0; $n < 120; $n++) {
            $ids[] = self::idOf($transport->send(new Envelope(new Text("$n"), $n % 2 ? [new DelayStamp(60_000 + $n)] : [])));
        }
        $evenFirst = [...range(0, 118, 2), ...range(1, 119, 2)];
        $this->assertSame(array_map('strval', $evenFirst), self::texts($transport->all()));
        $this->assertSame(['0', '2', '4'], self::texts($transport->all(3)));
        $this->assertSame(120, $transport->getMessageCount());
        $found = $transport->find($ids[7]);
        $this->assertSame(['7', $ids[7]], [$found->getMessage()->text, self::idOf($found)]);
        $transport->reject($found);
        $this->assertNull($transport->find($ids[7]));
        $transport->ack($transport->find($ids[8]));
        $this->assertSame(118, $transport->getMessageCount());
        [$running] = $transport->get();
        $this->assertSame('0', $transport->find(self::idOf($running))->getMessage()->text);
        $this->assertNull($transport->find('nobody'));
    }

    public function testSeveralMessagesOfOneFetchAndTheRestGoesBackWhenTheConsumerStops(): void
    {
        $transport = self::transport();
        foreach (['a', 'b', 'c', 'd'] as $text) {
            $transport->send(new Envelope(new Text($text)));
        }
        Server::redis()->rawCommand('CONFIG', 'RESETSTAT');
        // Symfony 8.1 does so with --fetch-size, and leaves the loop when it is stopped.
        foreach ($transport->get(3) as $envelope) {
            $transport->ack($envelope);
            $this->assertSame(2, $transport->queue()->len('running'));
            break;
        }
        unset($envelope);
        $this->assertStringContainsString('calls=1,', Server::redis()->info('commandstats')['cmdstat_dq.fetch']);
        $this->assertSame([3, 0], [$transport->queue()->len('ready'), $transport->queue()->len('running')]);
        $attempts = array_map(fn ($record) => $record['attempt'], iterator_to_array($transport->queue()->list('ready'), false));
        $this->assertSame([0, 0, 0], $attempts);
        $this->assertSame(['b', 'c', 'd'], self::texts($transport->get(9)));
        $this->assertSame([], self::texts($transport->getFromQueues(['q', 'other'], 2)));
    }

    public function testAMessageThatCannotBeDecodedGivesBackTheOthersOfItsFetch(): void
    {
        $transport = self::transport();
        $transport->queue()->send('nonsense', ['id' => 'x']);
        $transport->send(new Envelope(new Text('a')));
        $this->expectException(MessageDecodingFailedException::class);
        try {
            self::texts($transport->get(2));
        } finally {
            $this->assertSame([1, 1, 0], array_map($transport->queue()->len(...), ['ready', 'dead', 'running']));
        }
    }

    public function testSetupMakesTheQueueOnce(): void
    {
        $transport = self::transport();
        $transport->setup();
        $transport->setup();
        $this->assertSame(-1, $transport->queue()->info()['retries']);
    }

    public function testAMessageThatCannotBeDecodedIsKeptAsADeadOne(): void
    {
        $transport = self::transport();
        $transport->queue()->send('nonsense', ['id' => 'x']);
        try {
            $transport->get();
            $this->fail('decoded');
        } catch (MessageDecodingFailedException) {
            $this->assertStringStartsWith('not decoded: ', $transport->queue()->get('x')['error']);
        }
        $this->assertSame([], $transport->get());
        $this->assertSame(0, $transport->getMessageCount());
    }

    public function testSeveralQueuesAreWaitedForAtOnce(): void
    {
        $transport = self::transport('high?block=4000');
        $transport->queue('low')->send((new PhpSerializer())->encode(new Envelope(new Text('l')))['body'], ['delay' => 200]);
        [$envelope] = $transport->getFromQueues(['high', 'low']);
        $this->assertSame('low', $envelope->last(DqReceivedStamp::class)->queue);
        $transport->ack($envelope);
        $this->assertSame(0, $transport->queue('low')->len());
    }

    public function testOptionsOfAStamp(): void
    {
        $transport = self::transport();
        foreach (['a1', 'a2', 'b1'] as $text) {
            $transport->send(new Envelope(new Text($text), [new DqStamp(['group' => $text[0], 'id' => $text])]));
        }
        $again = $transport->send(new Envelope(new Text('other'), [new DqStamp(['id' => 'a1'])]));
        $this->assertSame('a1', self::idOf($again));
        [$a1] = $transport->get();
        $this->assertSame(['a1', 'b1'], [...self::texts([$a1]), ...self::texts($transport->get())]);
        $this->assertSame([], $transport->get());
        // A retry of a1 is another message of its group, although the envelope has the stamp.
        $retry = $transport->send($a1->with(new RedeliveryStamp(1), new DelayStamp(0)));
        $this->assertNotSame('a1', self::idOf($retry));
        $this->assertSame('a', $transport->queue()->get(self::idOf($retry))['group']);
        $transport->ack($a1);
        $this->assertSame(['a2'], self::texts($transport->get()));
    }

    /** Symfony's own worker with a retry strategy and a failure transport. */
    public function testAWorkerRetriesAndHandsOverToTheFailureTransport(): void
    {
        $transport = self::transport('q?block=1000');
        $failed = self::transport('failed');
        $locator = static fn (array $services) => new class ($services) implements \Psr\Container\ContainerInterface {
            public function __construct(private array $services)
            {
            }

            public function get(string $id): mixed
            {
                return $this->services[$id];
            }

            public function has(string $id): bool
            {
                return isset($this->services[$id]);
            }
        };
        $events = new EventDispatcher();
        $events->addSubscriber(new SendFailedMessageForRetryListener(
            $locator(['async' => $transport]),
            $locator(['async' => new MultiplierRetryStrategy(2, 150, 2)]),
        ));
        $events->addSubscriber(new SendFailedMessageToFailureTransportListener($locator(['async' => $failed])));
        $events->addSubscriber(new StopWorkerOnMessageLimitListener(4));
        $seen = [];
        $handler = function (Text $message) use (&$seen): void {
            $seen[] = $message->text;
            if ($message->text === 'bad') {
                throw new \RuntimeException('no');
            }
        };
        $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Text::class => [$handler]]))]);
        $transport->send(new Envelope(new Text('bad')));
        $transport->send(new Envelope(new Text('good')));
        (new Worker(['async' => $transport], $bus, $events))->run();
        $this->assertSame(['bad', 'good', 'bad', 'bad'], $seen);
        $this->assertSame(0, $transport->queue()->len());
        $this->assertSame(['bad'], self::texts($failed->all()));
        $this->assertSame(1, $failed->getMessageCount());
        // messenger:failed:remove
        [$one] = iterator_to_array($failed->all(), false);
        $failed->reject($failed->find(self::idOf($one)));
        $this->assertSame(0, $failed->getMessageCount());
    }

    // ---- the factory -------------------------------------------------------------------------------------------------

    public function testItSupportsItsSchemes(): void
    {
        $factory = new DqTransportFactory();
        $supported = fn (string $dsn): bool => $factory->supports($dsn, []);
        $this->assertSame([true, true, false, false], array_map($supported, ['dq://localhost', 'dqs://localhost/q', 'redis://localhost', 'dq']));
    }

    public function testTheQueueAndTheDatabaseOfADsn(): void
    {
        self::transport('', ['queue' => 'byOption'])->setup();
        self::transport('', ['stream' => 'byStream'])->setup();
        self::transport('byPath?dbindex=2', ['queue' => 'no', 'dbindex' => 3])->setup();
        self::transport('')->setup();
        $keys = Server::redis()->keys('*');
        sort($keys);
        $this->assertSame(['byOption', 'byStream', 'messages'], $keys);
        $this->assertSame(['byPath'], Server::redis(2)->keys('*'));
    }

    public static function wrong(): array
    {
        return [
            ['q?nonsense=1', [], 'nonsense'],
            ['q', ['redeliver_timeout' => 'soon'], 'redeliver_timeout'],
            ['q', ['block' => 10_000], 'block'],
            ['q', ['consumer' => ''], 'consumer'],
            ['', ['queue' => ''], 'queue'],
            // The password "127.0.0.1:6379/q#s", which is not escaped.
            ['q#s@host', [], 'must be escaped'],
            ['q@host', [], 'must be escaped'],
        ];
    }

    /** @dataProvider wrong */
    #[\PHPUnit\Framework\Attributes\DataProvider('wrong')]
    public function testWrongOptionsAreNamed(string $rest, array $options, string $named): void
    {
        $this->expectException(InvalidArgumentException::class);
        $this->expectExceptionMessage($named);
        self::transport($rest, $options);
    }

    public function testATransportWhoseServerIsAwayIsMadeAndThrowsWhenItIsUsed(): void
    {
        $factory = new DqTransportFactory();
        foreach ([[], ['lazy' => true], ['lazy' => false]] as $options) {
            $nobody = $factory->createTransport('dq://127.0.0.1:1/q?patience=0', $options, new PhpSerializer());
            $uses = [
                'send' => fn () => $nobody->send(new Envelope(new Text('a'))),
                'get' => fn () => $nobody->get(),
                'all' => fn () => iterator_to_array($nobody->all(), false),
                'find' => fn () => $nobody->find('a'),
                'getMessageCount' => fn () => $nobody->getMessageCount(),
                'setup' => fn () => $nobody->setup(),
            ];
            foreach ($uses as $name => $use) {
                try {
                    $use();
                    $this->fail("no error of $name");
                } catch (TransportException $error) {
                    $this->assertInstanceOf(ConnectionError::class, $error->getPrevious());
                }
            }
        }
    }

    public function testAPasswordAloneOrWithAUser(): void
    {
        Server::redis()->rawCommand('ACL', 'SETUSER', 'ann', 'on', '>p@ss', '~*', '+@all');
        $factory = new DqTransportFactory();
        $where = Server::host() . ':' . Server::port() . '/q';
        $factory->createTransport("dq://ann:p%40ss@$where", [], new PhpSerializer())->setup();
        $factory->createTransport("dq://$where", ['auth' => ['ann', 'p@ss']], new PhpSerializer())->setup();
        Server::redis()->rawCommand('ACL', 'DELUSER', 'ann');
        $this->expectException(TransportException::class);
        $factory->createTransport("dq://ann:p%40ss@$where", [], new PhpSerializer())->setup();
    }
}
