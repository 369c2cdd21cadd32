<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Doctrine\DBAL\Connection;
use Dq\Coding;
use Dq\Outbox\Outbox;
use Dq\UrlClient;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * Makes the transport of dq://host:port/queue. docs/drivers/symfony.md explains its options.
 *
 * It connects when it is first used. Symfony makes all transports of an application for a command such as
 * messenger:stats, and one whose server is away must not fail the others.
 */
final class DqTransportFactory implements TransportFactoryInterface
{
    /**
     * @param ?Connection $connection the database of the option `outbox`
     * @param ?AfterCommit $commits tells of commits there
     * @param ?Coding $secrets encrypts messages
     */
    public function __construct(
        private ?Connection $connection = null,
        private ?AfterCommit $commits = null,
        private ?Coding $secrets = null,
    ) {
    }

    public function createTransport(string $dsn, array $options, SerializerInterface $serializer): TransportInterface
    {
        $settings = Settings::of($dsn, $options);
        $client = new UrlClient($settings->url, $settings->timeout);
        $outbox = null;
        if ($settings->outbox) {
            $connection = $this->connection ?? throw new InvalidArgumentException('The option "outbox" needs a connection of Doctrine.');
            $outbox = new Outbox(static fn (): UrlClient => $client, new DbalRows($connection, $this->commits), DqTransport::RETRIES);
        }
        return new DqTransport($client, $settings, $serializer, $outbox, $this->secrets);
    }

    public function supports(string $dsn, array $options): bool
    {
        return Settings::supports($dsn);
    }
}
