<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\Context;
use Dq\Durable;
use Dq\Effects;
use Dq\Follow;
use Dq\Message;
use Dq\Next;
use Dq\NotConfirmed;
use Dq\Park;
use Dq\Queue;
use Dq\Reject;
use Dq\Retry;
use Dq\ServerError;
use Dq\Signal;
use Dq\Snooze;
use Dq\Tests\Server;
use Dq\Worker;
use PHPUnit\Framework\TestCase;

/** The conformance cases for clients, with each library. docs/clients.md explains the steps. */
final class ConformanceTest extends TestCase
{
    /** @var array<string, mixed> */
    private array $known;

    /** @return \Generator<string, array{string, list<array<string, mixed>>}> */
    public static function cases(): \Generator
    {
        $file = __DIR__ . '/../../../../tests/conformance/cases.json';
        foreach (json_decode(file_get_contents($file), true, 512, JSON_THROW_ON_ERROR)['cases'] as $case) {
            foreach (array_keys(Server::clients()) as $client) {
                yield "$client: $case[name]" => [$client, $case['steps']];
            }
        }
    }

    /**
     * @dataProvider cases
     *
     * @param list<array<string, mixed>> $steps
     */
    #[\PHPUnit\Framework\Attributes\DataProvider('cases')]
    public function testACase(string $client, array $steps): void
    {
        $redis = Server::client($client);
        $this->known = ['key' => 'php:' . bin2hex(random_bytes(6))];
        foreach ($steps as $step) {
            match (true) {
                isset($step['work']) => $this->work($redis, $step),
                isset($step['apply']) => $this->settle($redis, $step),
                isset($step['durable']) => $this->durable($redis, ...$step['durable']),
                default => $this->command($redis, $step),
            };
        }
        $this->addToAssertionCount(1);
    }

    private function command(Client $redis, array $step): void
    {
        $words = array_map(fn ($word): string => $this->filled((string) $word), $step['do']);
        $what = implode(' ', $words);
        try {
            $reply = $redis->call($words[1], $words, in_array('BLOCK', $words, true));
        } catch (ServerError $error) {
            $this->assertStringStartsWith($step['error'] ?? 'no error', $error->getMessage(), $what);
            return;
        }
        $this->assertArrayNotHasKey('error', $step, $what);
        $this->compare($step['reply'], $reply, $what);
    }

    private function filled(string $text): string
    {
        return preg_replace_callback('/<(\w+)>/', fn (array $found): string => (string) $this->known[$found[1]], $text);
    }

    private function compare(mixed $expected, mixed $given, string $what): void
    {
        if ($expected === null) {
            // phpredis gives a null array as an empty one.
            $this->assertContains($given, [null, []], $what);
        } elseif (is_string($expected) && preg_match('/^<(\w+)>$/', $expected, $found)) {
            $this->assertNotNull($given, $what);
            if ($found[1] !== 'any') {
                $this->assertSame($this->known[$found[1]] ??= $given, $given, $what);
            }
        } elseif (is_string($expected)) {
            // phpredis gives OK as true.
            $this->assertSame($this->filled($expected), $given === true ? 'OK' : $given, $what);
        } elseif (is_bool($expected)) {
            $this->assertSame($expected, (bool) $given, $what);
        } elseif (is_array($expected) && array_is_list($expected)) {
            $this->assertIsArray($given, $what);
            $this->assertCount(count($expected), $given, $what . ': ' . json_encode($given));
            foreach ($expected as $n => $one) {
                $this->compare($one, array_values($given)[$n], "$what: $n");
            }
        } elseif (is_array($expected)) {
            $map = [];
            foreach (array_chunk($given, 2) as [$name, $value]) {
                $map[$name] = $value;
            }
            foreach ($expected as $name => $one) {
                $this->assertArrayHasKey($name, $map, $what);
                $this->compare($one, $map[$name], "$what: $name");
            }
        } else {
            $this->assertNotNull($given, $what);
            $this->assertEquals($expected, (float) $given, $what);
        }
    }

    /** Settles a message by hand, with effects. */
    private function settle(Client $redis, array $step): void
    {
        $queue = new Queue($redis, $this->known['key']);
        $receipt = (int) $this->filled($step['receipt']);
        $effects = new Effects();
        $this->collect($effects, $step['effects']);
        try {
            $returned = match ($step['apply']) {
                'ack' => $queue->ack($receipt, ['apply' => $effects]),
                'ack_send' => $queue->ackSend($receipt, [new Next($step['next'][1], ['id' => $step['next'][0]])], ['apply' => $effects]),
                'fetch' => array_map(static fn (Message $message): string => $message->id, $queue->fetch(['ack' => [$receipt], 'apply' => $effects])),
            };
        } catch (ServerError $error) {
            $this->assertStringStartsWith($step['error'] ?? 'no error', $error->getMessage());
            return;
        }
        $this->assertArrayNotHasKey('error', $step);
        $this->assertSame($step['returns'], $returned);
        $this->compare($step['applied'], $effects->applied, 'applied');
    }

    /** Adds effects, each an array of its name and its arguments. An object at the end has arguments by their names. */
    private function collect(Effects $effects, array $given): void
    {
        foreach ($given as $words) {
            $method = str_replace('_', '', array_shift($words));
            $key = $this->filled(array_shift($words));
            $named = count($words) === 2 && is_array($words[1]) ? array_pop($words) : [];
            $effects->$method($key, ...$words, ...$named);
        }
    }

    /** Sends or acks by a queue whose commands nobody confirms: the server has no replica. */
    private function durable(Client $redis, string $verb, string $word, ?string $id = null): void
    {
        $queue = new Queue($redis, $this->known['key'], 0, new Durable(replicas: 9, inMemory: true, timeout: 10));
        try {
            $verb === 'send' ? $queue->send($word, ['id' => $id]) : $queue->ack((int) $this->filled($word));
            $this->fail("$verb is confirmed");
        } catch (NotConfirmed $missing) {
            $this->assertSame($id, $missing->id);
        }
    }

    private function work(Client $redis, array $step): void
    {
        $left = $step['work'];
        $worker = null;
        $handle = function (Message $message, Context $context) use (&$left, &$worker): mixed {
            if (--$left === 0) {
                $worker->stop();
            }
            $words = $message->json();
            if ($words[0] === 'apply') {
                $this->collect($message->effects(), $words[1]);
                $words = array_slice($words, 2);
            }
            return self::outcome($message, $context, ...$words);
        };
        $handlers = isset($step['types']) ? array_fill_keys($step['types'], $handle) : $handle;
        $worker = new Worker(new Queue($redis, $this->known['key']), $handlers, block: 100, grace: $step['grace'] ?? 20_000);
        $worker->run();
    }

    private static function outcome(Message $message, Context $context, string $verb, mixed $text = null, mixed $more = null): mixed
    {
        if ($verb === 'note' && $message->note() === null) {
            self::assertTrue($context->note($text));
            throw new \RuntimeException($text);
        }
        while ($verb === 'hang') {
            usleep(10_000);
        }
        return match (true) {
            $verb === 'fail' => throw new \RuntimeException($text),
            $verb === 'retry' => throw new Retry($text, $more),
            $verb === 'reject' => throw new Reject($text),
            $verb === 'snooze' => throw new Snooze(delay: $text),
            $verb === 'park' && $message->signal() === null => throw new Park(note: $text, for: $more),
            $verb === 'follow' => new Follow(new Next($more, ['id' => $text])),
            $verb === 'signal' => new Follow([new Signal($text, $more)]),
            $verb === 'cancel' => (new Queue(Server::client('predis'), $message->queue))->cancel($message->id),
            $verb === 'cost' => $context->cost($text),
            $verb === 'note' => $message->note(),
            $verb === 'park' => $message->signal(),
            default => $text,
        };
    }
}
