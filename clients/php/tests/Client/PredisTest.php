<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\ConnectionError;
use Dq\PredisClient;
use PHPUnit\Framework\TestCase;
use Predis\ClientInterface;
use Predis\Connection\ConnectionException;
use Predis\Connection\NodeConnectionInterface;

/** The behaviour of Predis 3 that differs from the releases before it. The tests cannot install it. */
final class PredisTest extends TestCase
{
    public function testAStreamThatIsAtItsEndIsALostConnection(): void
    {
        $redis = $this->createMock(ClientInterface::class);
        $redis->method('executeCommand')->willThrowException(new \RuntimeException('Stream is already at the end'));
        $redis->expects($this->once())->method('disconnect');
        $this->expectException(ConnectionError::class);
        (new PredisClient($redis))->call('q', ['DQ.LEN', 'q']);
    }

    public function testAnErrorHandlerThatThrowsDoesNotKeepADeadConnection(): void
    {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        fclose($theirs);
        $redis = $this->createMock(ClientInterface::class);
        $connection = $this->createMock(NodeConnectionInterface::class);
        $redis->method('executeCommand')->willReturnCallback(function () use ($ours, $connection): void {
            // Writing reports a broken pipe.
            $this->assertFalse(fwrite($ours, 'x'));
            throw new ConnectionException($connection, 'Error while writing bytes to the server.');
        });
        $heard = [];
        set_error_handler(function (int $level, string $text) use (&$heard): bool {
            $heard[] = $text;
            return true;
        });
        try {
            (new PredisClient($redis))->call('q', ['DQ.LEN', 'q']);
            $this->fail('no error');
        } catch (ConnectionError $error) {
            $this->assertSame('Error while writing bytes to the server.', $error->getMessage());
            $this->assertSame([], $heard);
        }
        // Errors that are not about a connection are for the application, also those that occur meanwhile.
        $other = $this->createMock(ClientInterface::class);
        $other->method('executeCommand')->willReturnCallback(fn (): int => trigger_error('heard', E_USER_WARNING) ? 1 : 0);
        try {
            (new PredisClient($other))->call('q', ['DQ.LEN', 'q']);
            fwrite($ours, 'x');
        } finally {
            restore_error_handler();
        }
        $this->assertSame('heard', $heard[0]);
        $this->assertStringStartsWith('fwrite()', $heard[1]);
    }

    public function testTheWaitForAReplyIsLimitedAlsoInAStreamOfAnObject(): void
    {
        $wrapper = new class () {
            /** @var list<array{int, int, int}> what was set */
            public static array $options = [];
            /** @var ?resource */
            public $context;

            public function stream_open(string $path, string $mode, int $options, ?string &$opened): bool
            {
                return true;
            }

            public function stream_set_option(int $option, int $first, int $second): bool
            {
                self::$options[] = [$option, $first, $second];
                return true;
            }
        };
        stream_wrapper_register('noted', $wrapper::class);
        try {
            $stream = new class (fopen('noted://', 'r')) {
                /** @param resource $stream */
                public function __construct(private $stream)
                {
                }
            };
            $connection = $this->createMock(NodeConnectionInterface::class);
            $connection->method('getResource')->willReturn($stream);
            $redis = $this->createMock(ClientInterface::class);
            $redis->method('getConnection')->willReturn($connection);
            (new PredisClient($redis))->limit(2.5);
            $this->assertContains([STREAM_OPTION_READ_TIMEOUT, 2, 500_000], $wrapper::$options);
        } finally {
            stream_wrapper_unregister('noted');
        }
    }
}
