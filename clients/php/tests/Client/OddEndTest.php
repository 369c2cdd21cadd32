<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Message;
use Dq\Queue;
use Dq\Retry;
use Dq\Tests\Program;
use Dq\Tests\Server;
use Dq\UrlClient;
use Dq\Worker;
use PHPUnit\Framework\TestCase;

/** Handlers that end in odd ways: the message fails with its error, and the next one runs. */
final class OddEndTest extends TestCase
{
    private Queue $queue;

    protected function setUp(): void
    {
        Server::redis()->flushAll();
        $this->queue = new Queue(new UrlClient(Server::url()), 'q');
        $this->queue->create(['retries' => -1, 'retain' => 60_000]);
    }

    private function send(string ...$ids): void
    {
        foreach ($ids as $id) {
            $this->queue->send($id, ['id' => $id]);
        }
    }

    /** @return array<string, array{string, string, int}> */
    public static function ends(): array
    {
        return [
            'exit' => ['exit(3);', 'the process was ended (exit)', 3],
            'die' => ['die("bye");', 'the process was ended (exit)', 0],
            'exit in a finally' => ['try { throw new Exception; } finally { exit(4); }', 'the process was ended (exit)', 4],
            'a function that is there twice' => ['function twice() {} eval("function twice() {}");', 'fatal error: Cannot redeclare', 255],
            'no memory left' => ['$x = []; while (true) { $x[] = str_repeat("x", 100_000); }', 'fatal error: Allowed memory size', 255],
            'one thing too large' => ['str_repeat("x", 500_000_000);', 'fatal error: Allowed memory size', 255],
            'no time left' => ['set_time_limit(1); while (true) { $n = ($n ?? 0) + 1; }', 'fatal error: Maximum execution time', 255],
            'an error of the user' => ['trigger_error("mine", E_USER_ERROR);', 'fatal error: mine', 255],
        ];
    }

    /** @dataProvider ends */
    #[\PHPUnit\Framework\Attributes\DataProvider('ends')]
    public function testAHandlerThatEndsItsProcessFailsItsMessageAtOnce(string $code, string $error, int $exit): void
    {
        $this->send('done', 'odd', 'not begun');
        $program = '(new Dq\Worker($queue, function ($m) { if ($m->id === "odd") { ' . $code . ' } }, count: 3))->run();';
        [$ended] = Program::run($program, ['memory_limit' => '32M']);
        $this->assertSame($exit, $ended);
        $this->assertSame('finished', $this->queue->get('done')['state']);
        $odd = $this->queue->get('odd');
        $this->assertStringStartsWith($error, $odd['error']);
        $this->assertSame([1, 0], [$odd['failures'], $odd['timeouts']]);
        $rest = $this->queue->get('not begun');
        $this->assertSame(['ready', 0, 0], [$rest['state'], $rest['attempt'], $rest['failures']]);
        // The process that replaces it continues.
        $seen = [];
        (new Worker($this->queue, function (Message $message) use (&$seen): void {
            $seen[] = $message->id;
        }, maxMessages: 2))->run();
        sort($seen);
        $this->assertSame(['not begun', 'odd'], $seen);
    }

    public function testAChildProcessOfAHandlerMayEndAsItLikes(): void
    {
        $this->send('a');
        [$ended] = Program::run('
            (new Dq\Worker($queue, function () {
                if (pcntl_fork() === 0) { exit(5); }
                pcntl_wait($status);
                return pcntl_wexitstatus($status);
            }, maxMessages: 1, heartbeat: false))->run();
        ');
        $this->assertSame([0, '5'], [$ended, $this->queue->get('a')['result']]);
    }

    public function testAProgramThatEndsAfterTheWorkerEndsAsUsual(): void
    {
        $this->send('a');
        [$ended, $said] = Program::run('
            $worker = new Dq\Worker($queue, fn () => "result", maxMessages: 1);
            $worker->run();
            echo $queue->get("a")["result"];
            exit(6);
        ');
        $this->assertSame([6, 'result'], [$ended, $said]);
    }

    public function testAMessageThatKillsItsWorkerIsGivenUpAfterThree(): void
    {
        $this->send('killer');
        for ($n = 1; $n <= 3; $n++) {
            [$ended, $said] = Program::run('(new Dq\Worker($queue, function ($m) {
                echo $m->attempt;
                posix_kill(getmypid(), SIGKILL);
            }, lease: 100, heartbeat: false))->run();');
            $this->assertSame([128 + SIGKILL, "$n"], [$ended, $said]);
            Server::until(fn () => $this->queue->get('killer')['timeouts'] === $n, 'the end of the lease');
        }
        $this->send('next');
        $seen = [];
        (new Worker($this->queue, function (Message $message) use (&$seen): void {
            $seen[] = $message->id;
        }, maxMessages: 2))->run();
        $killer = $this->queue->get('killer');
        $this->assertSame([['next'], 'dead'], [$seen, $killer['state']]);
        $this->assertSame('given up: 3 workers were lost with it', $killer['error']);
    }

    public function testAMessageThatOnlyFailsIsNotGivenUp(): void
    {
        $this->send('a');
        $attempts = 0;
        (new Worker($this->queue, function () use (&$attempts): void {
            if (++$attempts < 8) {
                throw new \Exception('again');
            }
        }, maxMessages: 8))->run();
        $this->assertSame([8, 'finished'], [$attempts, $this->queue->get('a')['state']]);
    }

    public function testWhateverAHandlerReturnsIsKeptAsTextOrAsJson(): void
    {
        $results = ['text' => 'text', 'true' => true, 'false' => false, 'number' => 7, 'list' => [1, 'ü/'], 'empty' => '', 'null' => null];
        $this->send(...array_keys($results));
        $handler = fn (Message $message): mixed => $results[$message->id];
        (new Worker($this->queue, $handler, count: 10, maxMessages: 7))->run();
        $kept = array_map(fn (string $id) => $this->queue->get($id)['result'], array_keys($results));
        $this->assertSame(['text', 'true', 'false', '7', '[1,"ü/"]', null, null], $kept);
    }

    public function testAResultWithoutJsonOrAnOddDelayIsAFailureLikeAnyOther(): void
    {
        $this->send('bytes', 'infinite', 'delay');
        $handler = fn (Message $message): mixed => match ($message->id) {
            'bytes' => ["\xff"],
            'infinite' => INF,
            'delay' => throw new Retry('later', -5),
        };
        (new Worker($this->queue, $handler, count: 3, maxMessages: 3))->run();
        $error = fn (string $id) => $this->queue->get($id)['error'];
        $this->assertStringStartsWith('JsonException: ', $error('bytes'));
        $this->assertStringStartsWith('JsonException: ', $error('infinite'));
        $this->assertSame(['later', 1], [$error('delay'), $this->queue->get('delay')['failures']]);
    }

    public function testAResultThatTheServerRefusesMakesItsMessageDead(): void
    {
        $this->send('a', 'b');
        Server::redis()->rawCommand('ACL', 'SETUSER', 'limited', 'on', '>pw', '~*', '+@all', '-dq.ack');
        try {
            $limited = new Queue(new UrlClient(str_replace('://', '://limited:pw@', Server::url())), 'q');
            (new Worker($limited, fn () => 'result', maxMessages: 2))->run();
        } finally {
            Server::redis()->rawCommand('ACL', 'DELUSER', 'limited');
        }
        foreach (['a', 'b'] as $id) {
            ['state' => $state, 'error' => $error] = $this->queue->get($id);
            $this->assertSame('dead', $state);
            $this->assertStringStartsWith('the result was refused: NOPERM', $error);
        }
    }
}
