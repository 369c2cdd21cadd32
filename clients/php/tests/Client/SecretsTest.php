<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Context;
use Dq\Effects;
use Dq\Message;
use Dq\Queue;
use Dq\Reject;
use Dq\Secrets;
use Dq\Tests\Server;
use Dq\UrlClient;
use Dq\Worker;
use PHPUnit\Framework\TestCase;

/** Encrypted payloads and headers: the cases of all languages. */
final class SecretsTest extends TestCase
{
    private array $given;

    protected function setUp(): void
    {
        $this->given = json_decode((string) file_get_contents(__DIR__ . '/../../../../tests/conformance/secrets.json'), true);
    }

    private function secrets(): Secrets
    {
        return new Secrets(array_map(base64_decode(...), $this->given['keys']), $this->given['headers'], $this->given['queues']);
    }

    public function testAMessageOfAnyLanguageIsRead(): void
    {
        foreach ($this->given['cases'] as $case) {
            $queue = $case['opened'] ?? $case['queue'];
            $plain = [base64_decode($case['payload']), $case['headers']];
            $this->assertEquals($plain, $this->secrets()->open($queue, $case['id'], base64_decode($case['sealed']), $case['fields']), $case['name']);
            [$sealed, $fields] = $this->secrets()->seal($case['queue'], $case['id'], ...$plain);
            $this->assertEqualsCanonicalizing(array_keys($case['fields']), array_keys($fields));
            $this->assertEquals($plain, $this->secrets()->open($queue, $case['id'], $sealed, $fields), $case['name']);
        }
    }

    public function testWhatWasNotSentSoIsRefused(): void
    {
        foreach ($this->given['broken'] as $case) {
            try {
                $this->secrets()->open($case['queue'], $case['id'], base64_decode($case['sealed']), $case['fields']);
                $this->fail($case['name']);
            } catch (Reject | \OutOfBoundsException $refused) {
                $this->assertSame($case['error'] === 'reject', $refused instanceof Reject, $case['name']);
            }
        }
    }

    public function testAWorkerGetsWhatWasSent(): void
    {
        Server::redis()->flushAll();
        $queue = new Queue(new UrlClient(Server::url()), 'mails', middleware: [$this->secrets()]);
        $id = $queue->send('hello', ['headers' => ['email' => 'ann']]);
        $this->assertStringNotContainsString('hello', $queue->get($id)['payload']);
        $got = [];
        $handler = static function (Message $message, Context $context) use (&$got): void {
            $message->effects()->incrby('done');
            $got = [$message->payload, $message->headers()];
        };
        (new Worker($queue, $handler, maxMessages: 1))->run();
        $this->assertSame(['hello', ['email' => 'ann']], $got);
        $this->assertSame('1', Server::redis()->get('done'));
    }
}
