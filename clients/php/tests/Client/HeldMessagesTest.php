<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Next;
use Dq\Queue;
use Dq\Signal;
use PHPUnit\Framework\TestCase;

/**
 * The conditions that a message may wait for beside its time and its group: a signal, limits, its children, the run
 * before.
 */
final class HeldMessagesTest extends TestCase
{
    use Queues;

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAMessageIsParkedUntilASignal(string $client): void
    {
        $queue = $this->manual($client);
        $queue->send('x', ['id' => 'x', 'park' => new \DateInterval('PT1S')]);
        $this->assertSame(['parked', 1_001_000], [$queue->explain('x')['code'], $queue->explain('x')['until']]);
        $this->assertSame([true, false], [$queue->signal('x', 'first'), $queue->signal('nobody')]);
        [$message] = $queue->fetch();
        $this->assertSame(['first', 'first'], [$message->signal(), $queue->get('x')['signal']]);
        $this->assertSame(1, $queue->nack($message, ['silent' => true, 'park' => true, 'note' => 'asked']));
        $queue->send('y');
        $following = [new Signal('x', 'second'), new Next('z', ['id' => 'z']), new Signal('nobody', to: $queue->key)];
        $this->assertSame([true, 'z', false], $queue->ackSend($queue->fetch()[0], $following));
        [$message, $other] = $queue->fetch(['count' => 2]);
        $this->assertSame(['second', 'asked', null, null], [$message->signal(), $message->note(), $other->signal(), $other->note()]);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testLimitsHaveNamesAndMessagesCosts(string $client): void
    {
        $queue = $this->manual($client, ['fair' => 'COST']);
        $queue->limit('tokens', ['rates' => [[1000, 'PER', 60_000], [5000, 'PER', 3_600_000]], 'weight' => true]);
        $queue->limit('user-*', ['concurrency' => 2, 'weight' => true]);
        foreach (['x', 'y'] as $id) {
            $queue->send($id, ['id' => $id, 'limits' => ['user-7', 'tokens'], 'cost' => 2]);
        }
        $record = $queue->get('x');
        $this->assertSame([['user-7', 'tokens'], 2, false], [$record['limits'], $record['cost'], $record['rerun']]);
        $messages = $queue->fetch(['count' => 2]);
        $this->assertSame(['limit', 'user-7'], [$queue->explain('y')['code'], $queue->explain('y')['by']]);
        $limits = fn (): array => array_column(iterator_to_array($queue->limits(['count' => 1]), false), null, 'limit');
        $user = $limits()['user-7'];
        $this->assertSame(['user-*', 2, 2, null], [$user['rule'], $user['concurrency'], $user['running-cost'], $user['next-free']]);
        $this->assertSame(1, $queue->ack($messages, ['cost' => 7]));
        $rates = [['limit' => 1000, 'per' => 60_000, 'used' => 7], ['limit' => 5000, 'per' => 3_600_000, 'used' => 7]];
        $this->assertSame($rates, $limits()['tokens']['rates']);
        $queue->limit('tokens');
        $this->assertNull($limits()['tokens']['rule'] ?? null);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAMessageWaitsForItsChildren(string $client): void
    {
        $queue = $this->manual($client);
        $parts = new Queue($queue->client, 'parts');
        $parts->create(['retain' => 60_000, 'retries' => 0]);
        $queue->send('publish', ['id' => 'p', 'children' => 2]);
        $parts->send('1', ['id' => 'a', 'parent' => ['q', 'p']]);
        $parts->send('2', ['id' => 'b', 'parent' => ['q', 'p'], 'on_dead' => 'GO']);
        $this->assertSame(['children-open', 2], [$queue->explain('p')['code'], $queue->get('p')['children']['total']]);
        $this->assertSame(['key' => 'q', 'id' => 'p', 'ondead' => 'GO'], $parts->get('b')['parent']);
        [$first, $second] = $parts->fetch(['count' => 2]);
        $parts->ack($first, ['result' => 'done']);
        $parts->nack($second, ['error' => 'broken']);
        $counts = $queue->fetch()[0]->meta['children'];
        $this->assertSame([1, 1], [$counts['finished'], $counts['dead']]);
        $children = iterator_to_array($queue->children('p', ['count' => 1]), false);
        $this->assertSame([['a', 'finished', 'done', null], ['b', 'dead', null, 'broken']], array_map(
            static fn (array $one): array => [$one['id'], $one['state'], $one['result'], $one['error']],
            $children,
        ));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testARunningMessageRunsOnceMore(string $client): void
    {
        $queue = $this->manual($client);
        $queue->send('1', ['id' => 'x', 'batch' => 'b']);
        [$message] = $queue->fetch();
        $this->assertNull($queue->send('2', ['id' => 'x', 'replace' => true]));
        $this->assertSame('x', $queue->send('3', ['id' => 'x', 'replace' => true, 'rerun' => true]));
        $this->assertTrue($queue->get('x')['rerun']);
        $this->assertSame(['b'], array_column(iterator_to_array($queue->batches(), false), 'batch'));
        $queue->ack($message);
        $this->assertSame('3', $queue->fetch()[0]->payload);
        $this->assertSame(1, $queue->tick(['advance' => 30_000])['timeouts']);
    }
}
