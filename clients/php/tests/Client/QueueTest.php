<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\ConnectionError;
use Dq\Effects;
use Dq\Next;
use Dq\PhpRedisClient;
use Dq\PredisClient;
use Dq\Queue;
use Dq\ServerError;
use Dq\Tests\Server;
use Dq\UrlClient;
use PHPUnit\Framework\TestCase;

final class QueueTest extends TestCase
{
    use Queues;

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAMessageComesBackAsItWasSent(string $client): void
    {
        $queue = $this->manual($client);
        $payload = random_bytes(300) . "\0\r\n";
        $id = $queue->send($payload, [
            'group' => 'g', 'score' => 0.1 + 0.2, 'priority' => -3, 'type' => 't',
            'headers' => ['a' => 'b', '5' => "\0"], 'retries' => 7, 'ttl' => 60_000,
        ]);
        $this->assertMatchesRegularExpression('/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/', $id);
        [$message] = $queue->fetch(['count' => 5, 'lease' => 500]);
        $this->assertSame([$id, 1, $payload, 'q'], [$message->id, $message->attempt, $message->payload, $message->queue]);
        $this->assertSame(['t', 'g'], [$message->type(), $message->group()]);
        $this->assertSame(['a' => 'b', '5' => "\0"], $message->headers());
        $this->assertSame(0.1 + 0.2, $message->meta['score']);
        $this->assertSame([-3, 7, 1_000_500], array_map(fn ($f) => $message->meta[$f], ['priority', 'retries-left', 'lease-until']));
        $this->assertSame(1, $queue->ack($message));
        $this->assertSame(0, $queue->ack($message));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testATakenIdIsNull(string $client): void
    {
        $queue = $this->manual($client);
        $this->assertSame('x', $queue->send('1', ['id' => 'x', 'delay' => 500]));
        $this->assertNull($queue->send('2', ['id' => 'x']));
        $this->assertSame('x', $queue->send('3', ['id' => 'x', 'replace' => true, 'at' => new \DateTimeImmutable('@2000')]));
        $this->assertSame([2_000_000, '3'], [$queue->get('x')['due-at'], $queue->get('x')['payload']]);
        $this->assertNull($queue->get('y'));
    }

    public function testThePrefixOfTheClientIsThatOfTheKeysOfEffects(): void
    {
        $predis = new \Predis\Client(['host' => Server::host(), 'port' => Server::port()], ['prefix' => 'app:']);
        $phpredis = Server::redis();
        $phpredis->setOption(\Redis::OPT_PREFIX, 'app:');
        foreach ([new PredisClient($predis), new PhpRedisClient($phpredis)] as $n => $client) {
            $queue = new Queue($client, 'q');
            $queue->send('x');
            [$message] = $queue->fetch();
            $effects = (new Effects())->incrby('paid')->ifMissing('none');
            $this->assertSame([1, [$n + 1]], [$queue->ack($message, ['apply' => $effects]), $effects->applied]);
        }
        $this->assertSame(['2', '2'], [$predis->get('paid'), $phpredis->get('paid')]);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testTimes(string $client): void
    {
        $queue = $this->manual($client, ['backoff' => ['EXP', new \DateInterval('PT1S')]]);
        $queue->later(new \DateInterval('PT2S'), 'late', ['id' => 'late']);
        $this->assertSame([], $queue->fetch());
        $queue->do('TICK', 'ADVANCE', 2000);
        [$message] = $queue->fetch();
        $this->assertSame(1, $queue->nack($message, ['error' => 'no']));
        $this->assertSame(['retry', 1_003_000, 'no'], array_map(fn ($f) => $queue->get('late')[$f], ['state', 'due-at', 'error']));
        $queue->do('TICK', 'ADVANCE', 1000);
        [$message] = $queue->fetch();
        $this->assertSame(1, $queue->touch(77, [$message, 5], ['note' => 'half']));
        $this->assertSame('half', $queue->get($message->id)['note']);
        $this->assertSame(1_003_077, $queue->get('late')['lease-until']);
        $this->assertSame(1, $queue->nack([$message], ['silent' => true]));
        $this->assertSame('ready', $queue->get('late')['state']);
        $this->assertTrue($queue->reschedule('late', ['delay' => 10]));
        $this->assertFalse($queue->reschedule('nobody', ['delay' => 10]));
        $this->assertTrue($queue->update('late', 'other'));
        $this->assertSame(['retry', null], $queue->cancel('late', 'nobody'));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testOneRoundTripAcksAndFetches(string $client): void
    {
        $queue = $this->manual($client, ['retain' => 60_000]);
        $ids = $queue->sendMany(['a', 'b', 'c']);
        $this->assertCount(3, $ids);
        $this->assertSame([], $queue->sendMany([]));
        $two = $queue->fetch(['count' => 2, 'consumer' => 'me', 'ack' => []]);
        [$last] = $queue->fetch(['ack' => $two]);
        $this->assertSame(['c', 'finished'], [$last->payload, $queue->get($ids[0])['state']]);
        $this->assertSame(1, $queue->ack($last, ['result' => 'well']));
        $this->assertSame(['finished', 'well'], $queue->wait($ids[2], 1000));
        $this->assertNull($queue->wait('nobody', 1000));
        $this->assertSame('me', $queue->consumers()[0]['name']);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testLooking(string $client): void
    {
        $queue = $this->manual($client, ['rate' => [1000, 'PER', 1000], 'max_running' => 3]);
        $queue->ensure(['max_len' => 500]);
        for ($n = 0; $n < 250; $n++) {
            $queue->send("$n", ['id' => "id$n", 'group' => "g$n"]);
        }
        $this->assertSame(250, $queue->len());
        $this->assertSame(0, $queue->len('delayed'));
        $this->assertSame(
            array_map(fn ($n) => "id$n", range(0, 249)),
            array_map(fn ($record) => $record['id'], iterator_to_array($queue->list('ready'), false)),
        );
        $this->assertCount(250, iterator_to_array($queue->groups(['count' => 7]), false));
        $this->assertSame(['id0', 'id1'], array_column($queue->peek(2), 'id'));
        $this->assertSame([250, '1000 PER 1000', 500], array_map(fn ($f) => $queue->info()[$f], ['ready', 'rate', 'maxlen']));
        $this->assertSame('behind-head', ($queue->send('later', ['id' => 'second', 'group' => 'g1']) !== null)
            ? $queue->explain('second')['code'] : null);
        $this->assertSame(1, $queue->purge(['group' => 'g5']));
        $queue->pause(['for' => 1000]);
        $this->assertSame([], $queue->fetch());
        $queue->resume();
        $queue->setGroup('g0', ['weight' => 2, 'rate' => [1, 'PER', 5]]);
        $this->assertSame('id0', $queue->fetch()[0]->id);
        $this->assertSame(1, $queue->nack($queue->fetch(), ['fatal' => true]));
        $this->assertSame(1, $queue->redrive());
        $this->assertSame([0, 0], [$queue->redrive(['ids' => ['id1']]), $queue->redrive(['count' => 5])]);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAMessageIsFinishedTogetherWithItsSuccessors(string $client): void
    {
        $queue = $this->manual($client, ['retain' => 60_000]);
        $queue->send('order 7', ['id' => 'o7']);
        [$message] = $queue->fetch();
        $next = [new Next('parcel 7', ['id' => 'p7', 'headers' => ['a' => 'b']], 'parcels'), new Next('paid', ['id' => 'm7'], to: 'mails')];
        $this->assertSame(['p7', 'm7'], $queue->ackSend($message, $next, ['result' => 'paid']));
        $this->assertSame(['finished', 'paid'], [$queue->get('o7')['state'], $queue->get('o7')['result']]);
        $this->assertSame(['a' => 'b'], (new Queue($queue->client, 'parcels'))->get('p7')['headers']);
        $this->assertNull($queue->ackSend($message, $next));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAFetchTakesFromTheFirstQueueThatCanGive(string $client): void
    {
        $queue = $this->manual($client);
        $low = new Queue($queue->client, 'low');
        $this->assertSame([], $queue->fetchFirst([$low]));
        $low->send('x', ['id' => 'a']);
        [$message] = $queue->fetchFirst([$low], ['consumer' => 'w', 'block' => 100]);
        $this->assertSame(['low', 'a'], [$message->queue, $message->id]);
        $queue->send('y');
        $this->assertSame('q', $queue->fetchFirst([$low], ['count' => 5])[0]->queue);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testFinding(string $client): void
    {
        $queue = $this->manual($client);
        foreach (['ann', 'bob', 'cid', 'dan'] as $name) {
            $queue->send("mail for $name", ['id' => $name, 'headers' => ['first' => $name[0]]]);
        }
        $found = fn (array $conditions) => array_column(iterator_to_array($queue->find('ready', $conditions), false), 'id');
        $this->assertSame(['bob'], $found(['payload' => '*bob']));
        $this->assertSame(['cid'], $found(['header' => ['first', 'c'], 'count' => 1]));
        $this->assertSame(['dan', 'cid', 'bob', 'ann'], $found(['rev' => true, 'count' => 2]));
        $this->assertSame(3, $queue->cancelFound('ready', ['id' => '[abc]*', 'count' => 1]));
        $this->assertSame(['dan'], $found([]));
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testFailedAttempts(string $client): void
    {
        $queue = $this->manual($client);
        $queue->send('p', ['id' => 'a', 'errors' => 2, 'backoff' => ['FIXED', 0]]);
        $queue->nack($queue->fetch(['consumer' => 'ann'])[0], ['error' => 'HTTP 500']);
        $failed = ['attempt' => 1, 'at' => 1_000_000, 'consumer' => 'ann', 'text' => 'HTTP 500'];
        $this->assertSame([$failed], $queue->get('a')['errors']);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testSchedulesAndJson(string $client): void
    {
        $queue = $this->manual($client);
        $this->assertSame(1_000_500, $queue->schedule('s', 'p', ['every' => 500, 'type' => 't']));
        $this->assertSame('s', $queue->schedules()[0]['name']);
        $queue->do('TICK', 'ADVANCE', 500);
        $this->assertSame('s@1000500', $queue->fetch()[0]->id);
        $this->assertTrue($queue->pauseSchedule('s'));
        $this->assertSame(1, (int) $queue->schedules()[0]['paused']);
        $this->assertTrue($queue->resumeSchedule('s'));
        $this->assertFalse($queue->pauseSchedule('t'));
        $this->assertTrue($queue->unschedule('s'));
        $this->assertFalse($queue->unschedule('s'));
        $json = '{"user": {"id": 7}, "n": "x"}';
        $this->assertSame(['7', 'x'], $queue->groupPush($json, ['/user/id'], ['id_path' => 'n']));
        $this->assertNull($queue->groupPush($json, ['/user/id'], ['id_path' => 'n']));
        $this->assertSame(['user' => ['id' => 7], 'n' => 'x'], $queue->fetch()[0]->json());
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testErrorsOfTheServerAreThrown(string $client): void
    {
        $queue = $this->queue($client);
        $this->redis->set('text', 'x');
        $wrong = new Queue($queue->client, 'text');
        $kinds = [];
        $queue->create(['maxlen' => 1]);
        $queue->send('1');
        foreach (
            [
                fn () => $queue->send('2'),
                fn () => $queue->create(),
                fn () => $wrong->len(),
                fn () => $queue->fetch(['nonsense' => 5]),
            ] as $call
        ) {
            try {
                $call();
                $kinds[] = 'none';
            } catch (ServerError $error) {
                $kinds[] = $error->kind();
                $this->assertFalse($error->isTransient());
            }
        }
        $this->assertSame(['QUEUEFULL', 'ERR', 'WRONGTYPE', 'ERR'], $kinds);
        $this->assertSame(1, $queue->len());
        $queue->alter(['sends' => 'OFF']);
        try {
            $queue->send('3');
            $this->fail('a closed queue takes a message');
        } catch (ServerError $error) {
            $this->assertSame('QUEUECLOSED', $error->kind());
        }
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testABlockLongerThanTheReadTimeoutIsRefused(string $client): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->queue($client)->fetch(['block' => 10_000]);
    }

    /** @dataProvider clients */
    #[\PHPUnit\Framework\Attributes\DataProvider('clients')]
    public function testAConnectionThatIsKilledWhileItWaitsIsAnErrorAtOnce(string $client): void
    {
        $queue = $this->queue($client);
        $queue->create();
        $child = pcntl_fork();
        if ($child === 0) {
            $redis = Server::redis();
            Server::until(fn () => $redis->info('clients')['blocked_clients'] > 0, 'a blocked client');
            $redis->rawCommand('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            posix_kill(getmypid(), SIGKILL);
        }
        $start = microtime(true);
        try {
            $queue->fetch(['block' => 9000]);
            $this->fail('no error');
        } catch (ConnectionError $error) {
            $this->assertTrue($error->isTransient());
            $this->assertLessThan(8.0, microtime(true) - $start);
        } finally {
            pcntl_waitpid($child, $status);
        }
        if ($client === 'url') {
            $this->assertSame([], $queue->fetch());
        }
    }

    public function testSendIsRepeatedWhileThereIsNoServer(): void
    {
        $queue = new Queue(new UrlClient('redis://127.0.0.1:1'), 'q', patience: 100);
        $start = microtime(true);
        try {
            $queue->send('x');
            $this->fail('no error');
        } catch (ConnectionError) {
            $this->assertGreaterThan(0.03, microtime(true) - $start);
        }
    }

    public function testUrls(): void
    {
        $queue = Queue::connect(Server::url() . '/3', 'q');
        $queue->send('x');
        $this->redis->select(3);
        $this->assertSame(1, $this->redis->exists('q'));
        $this->redis->rawCommand('ACL', 'SETUSER', 'ann', 'on', '>s@cret', '~q', '+dq.len');
        $url = sprintf('redis://ann:s%%40cret@%s:%d', Server::host(), Server::port());
        $this->assertSame(0, Queue::connect($url, 'q')->len());
        foreach (['redis://ann:wrong@', 'http://ann:wrong@', 'redis+sentinel://ann:wrong@'] as $start) {
            try {
                Queue::connect($start . Server::host() . ':' . Server::port(), 'q')->len();
                $this->fail($start);
            } catch (ServerError $error) {
                $this->assertStringStartsWith('WRONGPASS', $error->getMessage());
            } catch (\InvalidArgumentException $error) {
                $this->assertNotSame('redis://ann:wrong@', $start);
            }
            $this->assertStringNotContainsString('wrong@', $error->getMessage());
        }
        $this->redis->rawCommand('ACL', 'DELUSER', 'ann');
    }

    public function testAPartOfAPasswordIsNotTakenForAnAddress(): void
    {
        foreach ([':s3cret/x@host', 's3cret/x@host', 's3cret#x@host', 's3cret?x@host', 'ann:1/s3cret@host'] as $rest) {
            try {
                Queue::connect("redis://$rest:1", 'q')->len();
                $this->fail($rest);
            } catch (\InvalidArgumentException $error) {
                $this->assertStringNotContainsString('s3cret', $error->getMessage());
            }
        }
    }
}
