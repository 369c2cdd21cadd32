<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\ConnectionError;
use Dq\Retrying;
use Dq\UrlClient;
use PHPUnit\Framework\TestCase;

final class SignalsTest extends TestCase
{
    private const SIGNALS = 20_000;

    /** A signal may come at any moment between a lost connection and the next try. A worker that misses it never stops. */
    public function testNoSignalIsForgottenWhileCommandsFail(): void
    {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $child = $this->sender($theirs);
        fclose($theirs);
        stream_set_blocking($ours, false);
        // No server listens at this path.
        $client = new UrlClient('unix:///nowhere');
        $came = 0;
        $async = pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, function () use (&$came): void {
            $came++;
        });
        try {
            for ($sent = 1; $sent <= self::SIGNALS; $sent++) {
                fwrite($ours, '.');
                do {
                    $error = Retrying::attempt(fn () => $client->call('q', ['DQ.FETCH', 'q']));
                    $this->assertInstanceOf(ConnectionError::class, $error);
                } while (fread($ours, 1) !== '.');
                $this->assertSame($sent, $came);
            }
        } finally {
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
            pcntl_signal(SIGUSR1, SIG_DFL);
            pcntl_async_signals($async);
        }
    }

    /**
     * A process that sends a signal each time it gets an order, and then reports it.
     *
     * @param resource $socket
     */
    private function sender($socket): int
    {
        $parent = getmypid();
        $child = pcntl_fork();
        if ($child === 0) {
            while (fread($socket, 1) === '.') {
                // The delay varies, so that the signal arrives in each step of a try.
                for ($steps = mt_rand(0, 500); $steps > 0; $steps--);
                posix_kill($parent, SIGUSR1);
                fwrite($socket, '.');
            }
            posix_kill(getmypid(), SIGKILL);
        }
        return $child;
    }
}
