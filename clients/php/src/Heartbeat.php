<?php

declare(strict_types=1);

namespace Dq;

/**
 * Extends leases while a handler runs. It needs pcntl and posix.
 *
 * PHP has one thread, and its signal handlers do not run while the program waits for a database or a web server. So this
 * is a child process with a connection of its own. It is told over a socket which leases it keeps. It ends with its
 * parent, however that ends.
 */
final class Heartbeat
{
    /**
     * Seconds in which the child gathers its orders: to wake for each message would cost more than a short handler. The
     * socket keeps some 270 lines, and the parent must not wait for room in it.
     */
    private const GATHERING = 0.002;

    /** @var ?resource the parent's end of the socket */
    private $socket = null;
    private int $child = 0;

    /**
     * @param \Closure(): Client $connect makes the child's connection
     * @param int $lease ms from each beat to the end of a lease. There are three beats in this time
     * @param ?int $timeLimit ms after which a lease is no longer extended: its handler hangs
     */
    public function __construct(private \Closure $connect, private int $lease, private ?int $timeLimit = null)
    {
    }

    public static function isPossible(): bool
    {
        return function_exists('pcntl_fork') && function_exists('posix_getppid');
    }

    /** Keeps the leases of these messages from now on. */
    public function keep(Message ...$messages): void
    {
        $lines = array_map(static fn (Message $m): string => "+ $m->receipt $m->queue\n", $messages);
        if (!$this->tell(implode('', $lines))) {
            $this->stop();
            $this->start();
            $this->tell(implode('', $lines));
        }
    }

    /** Stops extending the lease of this message. */
    public function drop(Message $message): void
    {
        $this->tell("- $message->receipt\n");
    }

    /** Ends the child. `keep` makes another one. */
    public function stop(): void
    {
        if ($this->socket !== null) {
            fclose($this->socket);
            $this->socket = null;
            // The child may be waiting for a server that does not answer.
            posix_kill($this->child, SIGKILL);
            pcntl_waitpid($this->child, $status);
        }
    }

    private function tell(string $lines): bool
    {
        return $this->socket !== null && @fwrite($this->socket, $lines) === strlen($lines);
    }

    private function start(): void
    {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $parent = getmypid();
        $child = pcntl_fork();
        if ($child === -1) {
            throw new \RuntimeException('no process for the heartbeat: ' . pcntl_strerror(pcntl_get_last_error()));
        }
        if ($child === 0) {
            try {
                fclose($ours);
                $this->beat($theirs, $parent);
            } finally {
                // An ordinary end would run the destructors and the shutdown functions of the parent's program.
                posix_kill(getmypid(), SIGKILL);
            }
        }
        fclose($theirs);
        $this->socket = $ours;
        $this->child = $child;
    }

    /**
     * The child's loop.
     *
     * @param resource $socket
     */
    private function beat($socket, int $parent): void
    {
        // Signals to the whole group (Ctrl-C) are the parent's: it may still want to finish its message.
        foreach ([SIGTERM, SIGINT, SIGHUP, SIGQUIT] as $signal) {
            pcntl_signal($signal, SIG_IGN);
        }
        stream_set_blocking($socket, false);
        $client = null;
        $held = [];
        $unread = '';
        $interval = $this->lease / 3000;
        $next = microtime(true) + $interval;
        while (posix_getppid() === $parent) {
            $read = [$socket];
            $none = null;
            $wait = max(0.0, $next - microtime(true));
            if (@stream_select($read, $none, $none, (int) $wait, (int) (fmod($wait, 1) * 1e6)) > 0) {
                usleep((int) (min(self::GATHERING, $interval / 4) * 1e6));
                $told = (string) stream_get_contents($socket);
                if ($told === '' && feof($socket)) {
                    return;
                }
                $lines = explode("\n", $unread . $told);
                $unread = array_pop($lines);
                foreach ($lines as $line) {
                    [$sign, $receipt, $key] = explode(' ', $line, 3) + [2 => ''];
                    if ($sign === '+') {
                        $held[$receipt] = [$key, microtime(true)];
                    } else {
                        unset($held[$receipt]);
                    }
                }
                if (microtime(true) < $next) {
                    continue;
                }
            }
            $next = microtime(true) + $interval;
            try {
                foreach ($this->toTouch($held) as $key => $receipts) {
                    $client ??= ($this->connect)();
                    $client->call((string) $key, ['DQ.TOUCH', $key, $this->lease, ...$receipts]);
                }
            } catch (ConnectionError) {
                $client = null; // the next beat may come in time
            } catch (ServerError) {
                // The key is gone or has another type now, so the lease is over, and the ack will show it.
            }
        }
    }

    /**
     * @param array<int, array{string, float}> $held receipt => queue and since when
     * @return array<string, list<int>> queue => receipts
     */
    private function toTouch(array $held): array
    {
        $receipts = [];
        foreach ($held as $receipt => [$key, $since]) {
            if ($this->timeLimit === null || (microtime(true) - $since) * 1000 < $this->timeLimit) {
                $receipts[$key][] = $receipt;
            }
        }
        return $receipts;
    }
}
