<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Dq\Error;
use Dq\UrlClient;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/** Makes the transport of dq://host:port/queue. docs/drivers/symfony.md says what its options are. */
final class DqTransportFactory implements TransportFactoryInterface
{
    public function createTransport(string $dsn, array $options, SerializerInterface $serializer): TransportInterface
    {
        $settings = Settings::of($dsn, $options);
        $client = new UrlClient($settings->url, $settings->timeout);
        if (!$settings->lazy) {
            try {
                $client->open();
            } catch (Error $error) {
                throw new InvalidArgumentException('Connection to dq failed: ' . $error->getMessage(), 0, $error);
            }
        }
        return new DqTransport($client, $settings, $serializer);
    }

    public function supports(string $dsn, array $options): bool
    {
        return Settings::supports($dsn);
    }
}
