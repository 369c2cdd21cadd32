<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Tests\Server;
use Illuminate\Queue\Events\JobProcessing;
use Illuminate\Queue\Events\JobProcessed;

/** A worker continues over a new connection, whenever the old one is cut. */
final class LostConnectionTest extends AppTestCase
{
    /** Cuts all connections. */
    private static function cut(): void
    {
        Server::redis()->rawCommand('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAConnectionThatIsCutBetweenTwoCommandsIsMadeAnew(string $driver): void
    {
        $this->start($driver);
        foreach (['delete', 'release', 'touch'] as $verb) {
            $this->queue->push(new Note($verb));
            self::cut();
            $job = $this->queue->pop();
            $this->assertSame(1, $job->attempts());
            self::cut();
            match ($verb) {
                'delete' => $job->delete(),
                'release' => $job->release(100),
                'touch' => $this->assertTrue($job->touch(5)),
            };
            $left = ['delete' => [0, 0], 'release' => [1, 0], 'touch' => [2, 1]][$verb];
            $this->assertSame($left, [$this->queue->size(), $this->queue->reservedSize()]);
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAConnectionThatIsCutWhileAPopWaitsIsMadeAnew(string $driver): void
    {
        foreach (['default', 'high,default'] as $queues) {
            $this->start($driver, ['block_for' => 5]);
            $child = pcntl_fork();
            if ($child === 0) {
                $redis = Server::redis();
                Server::until(fn () => $redis->info('clients')['blocked_clients'] > 0, 'a waiting worker');
                self::cut();
                Server::redis(4)->rawCommand('DQ.SEND', 'app_dq:default', '{"displayName":"x"}', 'RETRIES', '-1');
                posix_kill(getmypid(), SIGKILL);
            }
            $this->assertSame(1, $this->queue->pop($queues)->attempts());
            pcntl_waitpid($child, $status);
            $this->queue->clear('default');
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerWhoseConnectionIsCutByEachJobRunsEachJobOnce(string $driver): void
    {
        foreach ([true, false] as $ackWithNext) {
            Note::$seen = [];
            $this->start($driver, ['ack_with_next' => $ackWithNext]);
            foreach ([JobProcessing::class, JobProcessed::class] as $event) {
                $this->app->events->listen($event, fn () => self::cut());
            }
            foreach (['a', 'b', 'c'] as $name) {
                $this->queue->push(new Note($name));
            }
            $this->work('default', ['maxTries' => 1]);
            $this->assertSame(['a 1 default', 'b 1 default', 'c 1 default'], Note::$seen);
            $this->assertSame([[], 0], [$this->app->reported, $this->queue->size()]);
        }
    }

    public function testTheJobOfALostReplyIsGivenAgainAndNotCountedTwice(): void
    {
        $this->start('phpredis');
        $this->queue->push(new Note('a'));
        // The reply to the first try is lost: the server has run the command, and the connection is gone.
        $this->queue->getConnection()->setEventDispatcher($this->app->events);
        $lost = false;
        $this->app->events->listen(\Illuminate\Redis\Events\CommandExecuted::class, function ($event) use (&$lost): void {
            if (!$lost && $event->parameters[0] === 'DQ.FETCH') {
                $lost = true;
                self::cut();
                throw new \RedisException('read error on connection');
            }
        });
        $job = $this->queue->pop();
        $this->assertTrue($lost);
        $this->assertSame(['a', 1, 1], [unserialize(json_decode($job->getRawBody())->data->command)->name, $job->attempts(), $this->queue->reservedSize()]);
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAJobWhoseLeaseMayNotBeRenewedIsGivenAllTheSame(string $driver): void
    {
        $this->start($driver, ['retry_after' => 1, 'block_for' => 2]);
        // It comes when so much of a lease has gone by that it would be renewed.
        Server::redis(4)->rawCommand('DQ.SEND', 'app_dq:default', '{"displayName":"x"}', 'RETRIES', '-1', 'DELAY', '500');
        Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '-dq.touch');
        try {
            $this->assertSame(1, $this->queue->pop()?->attempts());
        } finally {
            Server::redis()->rawCommand('ACL', 'SETUSER', 'default', '+@all');
        }
    }

    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testAWorkerStopsInTimeWithoutItsServer(string $driver): void
    {
        $this->start($driver);
        $this->queue->push(new Note('a'));
        $this->app->events->dispatch(new \Illuminate\Queue\Events\Looping('dq', 'default'));
        $this->queue->pop()->fire();
        $admin = Server::redis();
        $admin->rawCommand('CONFIG', 'SET', 'maxclients', '1');
        try {
            $admin->rawCommand('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            $since = microtime(true);
            $this->app->events->dispatch(new \Illuminate\Queue\Events\WorkerStopping(0));
            $this->assertLessThan(2.0, microtime(true) - $since);
        } finally {
            $admin->rawCommand('CONFIG', 'SET', 'maxclients', '10000');
        }
    }
}
