<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/** The methods of the connection of Symfony's transport for Redis, which its tests call, over the transport of dq. */
final class Connection implements SerializerInterface
{
    private DqTransport $transport;
    /** @var array<string, Envelope> those that were received, by id */
    private array $received = [];

    public static function fromDsn(string $dsn, array $options = []): self
    {
        $connection = new self();
        $connection->transport = (new DqTransportFactory())->createTransport($dsn, $options, $connection);
        return $connection;
    }

    public function encode(Envelope $envelope): array
    {
        return (array) $envelope->getMessage();
    }

    public function decode(array $encodedEnvelope): Envelope
    {
        return new Envelope((object) $encodedEnvelope);
    }

    public function add(string $body, array $headers, int $delayInMs = 0): void
    {
        $this->transport->send(new Envelope((object) ['body' => $body, 'headers' => $headers], [new DelayStamp($delayInMs)]));
    }

    public function get(): ?array
    {
        foreach ($this->transport->get() as $envelope) {
            $id = $envelope->last(TransportMessageIdStamp::class)->getId();
            $this->received[$id] = $envelope;
            return ['id' => $id, 'data' => ['message' => json_encode($envelope->getMessage())]];
        }
        return null;
    }

    public function ack(string $id): void
    {
        $this->transport->ack($this->received[$id]);
    }

    public function reject(string $id): void
    {
        $this->transport->reject($this->received[$id]);
    }

    public function setup(): void
    {
        $this->transport->setup();
    }

    public function cleanup(): void
    {
        $this->transport->queue()->purge();
    }
}
