<?php

declare(strict_types=1);

namespace Dq\Tests;

/** A PHP program in a process of its own, which may end in any way. It has the queue `$queue` and phpredis as `$redis`. */
final class Program
{
    /**
     * Runs it to its end.
     *
     * @param array<string, string|int> $settings of php.ini
     * @return array{int, string} its exit code (128 and the signal, if one has ended it) and what it printed
     */
    public static function run(string $code, array $settings = []): array
    {
        $words = [PHP_BINARY];
        foreach ($settings + ['display_errors' => 'stderr'] as $name => $value) {
            array_push($words, '-d', "$name=$value");
        }
        $begin = 'require ' . var_export(__DIR__ . '/bootstrap.php', true) . ';'
            . '$redis = Dq\Tests\Server::redis();'
            . '$queue = new Dq\Queue(new Dq\UrlClient(Dq\Tests\Server::url()), "q");';
        $process = proc_open([...$words, '-r', $begin . $code], [1 => ['pipe', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes);
        $said = stream_get_contents($pipes[1]);
        do {
            $status = proc_get_status($process);
            usleep(2_000);
        } while ($status['running']);
        return [$status['signaled'] ? 128 + $status['termsig'] : $status['exitcode'], $said];
    }
}
