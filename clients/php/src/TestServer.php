<?php

declare(strict_types=1);

namespace Dq;

/**
 * A server with dq for tests: in memory, on a free port. It ends with this object, and with this process, even if that is
 * killed.
 *
 * It is the program `dq` that the variable DQ_CLI names, or the one on PATH.
 */
final class TestServer
{
    /** The address of the server: redis://127.0.0.1:PORT */
    public readonly string $url;
    /** @var ?resource */
    private $process;

    /**
     * @param string ...$options more options of `dq server`
     * @throws \RuntimeException if the program is not there, or starts no server
     */
    public function __construct(string ...$options)
    {
        $program = getenv('DQ_CLI') ?: 'dq';
        $pipes = [];
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']];
        $process = @proc_open([$program, 'server', '--ephemeral', ...$options], $streams, $pipes);
        $url = is_resource($process) ? trim((string) fgets($pipes[1])) : '';
        if ($url === '') {
            $said = is_resource($process) ? trim((string) stream_get_contents($pipes[2])) : '';
            throw new \RuntimeException("$program starts no server: tests with dq need the program dq, on PATH or named by DQ_CLI. $said");
        }
        $this->process = $process;
        $this->url = $url;
    }

    /** Ends the server. */
    public function stop(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process);
            proc_close($this->process);
            $this->process = null;
        }
    }

    public function __destruct()
    {
        $this->stop();
    }
}
