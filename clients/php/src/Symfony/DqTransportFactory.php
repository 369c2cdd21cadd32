<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Dq\UrlClient;
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
    public function createTransport(string $dsn, array $options, SerializerInterface $serializer): TransportInterface
    {
        $settings = Settings::of($dsn, $options);
        return new DqTransport(new UrlClient($settings->url, $settings->timeout), $settings, $serializer);
    }

    public function supports(string $dsn, array $options): bool
    {
        return Settings::supports($dsn);
    }
}
