<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Dq\Secrets;
use Dq\Symfony\DqTransportFactory;
use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

final class SecretsTest extends TestCase
{
    public function testMessagesAreEncryptedOnTheirWay(): void
    {
        Server::redis()->flushAll();
        $factory = new DqTransportFactory(secrets: new Secrets(['2026' => random_bytes(32)]));
        $transport = $factory->createTransport(sprintf('dq://%s:%d/q', Server::host(), Server::port()), [], new PhpSerializer());
        $transport->send(new Envelope(new Text('hello ann')));
        [$record] = iterator_to_array($transport->queue()->list('ready'), false);
        $this->assertStringNotContainsString('ann', $record['payload']);
        $transport->queue()->send($record['payload'], ['id' => 'copied', 'headers' => $record['headers']]);
        $this->assertSame('hello ann', $transport->find($record['id'])->getMessage()->text);
        [$envelope] = [...$transport->get()];
        $this->assertSame('hello ann', $envelope->getMessage()->text);
        $transport->ack($envelope);
        $this->expectException(MessageDecodingFailedException::class);
        [...$transport->get()];
    }
}
