<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\Compression;
use Dq\Context;
use Dq\Effects;
use Dq\Layers;
use Dq\Message;
use Dq\Offload;
use Dq\Queue;
use Dq\Reject;
use Dq\Secrets;
use Dq\Tests\Server;
use Dq\Tests\Shelf;
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

    private function layers(Shelf $shelf, Client $client): Layers
    {
        require_once __DIR__ . '/../zstd.php';
        $given = $this->given['layers'];
        return new Layers(new Compression(most: $given['most']), $this->secrets(), new Offload($shelf, $client, $given['above']));
    }

    public function testLayersOfAnyLanguageAreReadAndWhatCannotBeReadIsRefused(): void
    {
        $client = new UrlClient(Server::url());
        foreach ($this->given['layers']['cases'] as $case) {
            $layers = $this->layers(new Shelf(array_map(base64_decode(...), $case['store'])), $client);
            $plain = str_repeat(base64_decode($case['payload']), $case['times'] ?? 1);
            $this->assertSame([$plain, []], $layers->open('mails', 'm', base64_decode($case['sealed']), $case['fields']), $case['name']);
            [$sealed, $fields] = $layers->seal('mails', 'm', $plain);
            $this->assertEqualsCanonicalizing(array_keys($case['fields']), array_keys($fields));
            $this->assertSame([$plain, []], $layers->open('mails', 'm', $sealed, $fields), $case['name']);
        }
        foreach ($this->given['layers']['broken'] as $case) {
            try {
                $this->layers(new Shelf(), $client)->open('mails', 'm', base64_decode($case['sealed']), $case['fields']);
                $this->fail($case['name']);
            } catch (Reject | \OutOfBoundsException $refused) {
                $this->assertSame($case['error'] === 'reject', $refused instanceof Reject, $case['name']);
            }
        }
    }

    public function testWhatIsKeptElsewhereGoesWithItsRecord(): void
    {
        Server::redis()->flushAll();
        $shelf = new Shelf();
        $client = new UrlClient(Server::url());
        $offload = new Offload($shelf, $client, 10);
        $queue = new Queue($client, 'mails', middleware: [$offload]);
        $offload->seal('mails', 'never-sent', str_repeat('x', 11));
        $queue->send(str_repeat('x', 11), ['id' => 'waits']);
        $this->assertSame([0, 1, 1], [$offload->sweep('mails'), $offload->sweep('mails', -1000), count($shelf->kept)]);
        $got = null;
        (new Worker($queue, static function (Message $message) use (&$got): void {
            $got = $message->payload;
        }, maxMessages: 1))->run();
        $this->assertSame(str_repeat('x', 11), $got);
        $this->assertSame([1, []], [$offload->sweep('mails', -1000), $shelf->kept]);
    }

    public function testWhatAWorkerHasOpenedGoesWithItsRecord(): void
    {
        ['above' => $above, 'payload' => $text, 'queues' => $queues, 'named' => $named] = $this->given['offload'];
        foreach ($queues as ['deadto' => $deadTo, 'goes' => $goes]) {
            Server::redis()->flushAll();
            $shelf = new Shelf();
            $client = new UrlClient(Server::url());
            $offload = new Offload($shelf, $client, $above, $named);
            $queue = new Queue($client, 'mails');
            $queue->create($deadTo === null ? [] : ['deadto' => $deadTo]);
            [$payload, $headers] = $offload->seal('mails', 'first', $text);
            $queue->send($payload, ['id' => 'first', 'headers' => $headers]);
            [$message] = $queue->fetch();
            $this->assertSame($text, $offload->open('mails', 'first', $message->payload, $message->headers())[0]);
            $first = array_key_first($shelf->kept);
            $offload->seal('mails', 'second', $text);
            $this->assertArrayHasKey($first, $shelf->kept);
            $queue->ack($message);
            $offload->seal('mails', 'third', $text);
            $this->assertSame(!$goes, isset($shelf->kept[$first]), (string) $deadTo);
        }
    }
}
