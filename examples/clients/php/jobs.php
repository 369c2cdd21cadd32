<?php
/*
 * A producer and a worker with phpredis; ../README.md says what they show.
 *
 *     apt install php-cli php-redis
 *     php jobs.php send redis://127.0.0.1:6379 orders 100
 *     php jobs.php work redis://127.0.0.1:6379 orders
 *
 * PHP has one thread, so the work itself sends the heartbeats, between its steps.
 */

declare(strict_types=1);

define('LEASE_MS', (int) (getenv('LEASE_MS') ?: 30000));
const BLOCK_MS = 2000;
const SOCKET_TIMEOUT_S = 5.0; // longer than BLOCK_MS

final class GivenBack extends Exception
{
}

/** The server answered with an error: repeating the command would not help. */
final class Refused extends Exception
{
}

/** A connection that is made again when it is lost. */
final class Server
{
    public bool $stopping = false;
    private ?Redis $redis = null;

    public function __construct(private string $url)
    {
    }

    /** One command. RedisException where the connection is lost, Refused for an error reply. */
    public function call(string|int ...$words): mixed
    {
        try {
            $this->redis ??= $this->connect();
            $reply = $this->redis->rawCommand(...$words);
            $error = $this->redis->getLastError();
        } catch (RedisException $lost) {
            $this->redis = null;
            throw $lost;
        }
        if ($error !== null) {
            $this->redis->clearLastError();
            throw new Refused($error);
        }
        return $reply;
    }

    /** Repeats a command until it is answered. All commands here may be: see ../README.md. */
    public function insist(string|int ...$words): mixed
    {
        for ($pause = 50; ; $pause = min($pause * 2, 1000)) {
            try {
                return $this->call(...$words);
            } catch (RedisException $lost) {
                if ($this->stopping) {
                    throw $lost;
                }
                say('trying again:', $lost->getMessage());
            }
            usleep($pause * 1000);
        }
    }

    private function connect(): Redis
    {
        $parts = parse_url($this->url);
        $redis = new Redis();
        $redis->connect($parts['host'], $parts['port'] ?? 6379, SOCKET_TIMEOUT_S, null, 0, SOCKET_TIMEOUT_S);
        // By itself phpredis makes a lost connection anew and waits on it for the reply that went down with the old one.
        $redis->setOption(Redis::OPT_MAX_RETRIES, 0);
        if (isset($parts['pass'])) {
            $redis->auth(isset($parts['user']) ? [$parts['user'], $parts['pass']] : $parts['pass']);
        }
        $database = (int) trim($parts['path'] ?? '', '/');
        if ($database) {
            $redis->select($database);
        }
        return $redis;
    }
}

function say(string|int ...$words): void
{
    echo implode(' ', $words), "\n";
}

// ---- producer -------------------------------------------------------------------------------------------------------

function send(Server $server, string $queue, int $count, int $workMs): void
{
    try {
        $server->insist('DQ.CREATE', $queue, 'DEDUP', 60000);
    } catch (Refused $error) {
        if (!str_contains($error->getMessage(), 'queue already exists')) {
            throw $error;
        }
    }
    for ($n = 0; $n < $count; $n++) {
        $job = ['order' => "order-$n", 'work_ms' => $workMs];
        $id = "close:{$job['order']}";
        // phpredis gives null as false.
        $added = $server->insist('DQ.SEND', $queue, json_encode($job), 'ID', $id);
        say($added ? 'sent' : 'already there', $id);
    }
}

// ---- worker ---------------------------------------------------------------------------------------------------------

/** The work, in steps between which it can be stopped; false if somebody with a newer receipt did it before. */
function close_order(Server $server, string $queue, array $job, int $receipt, callable $beat): bool
{
    if ($job['broken'] ?? false) {
        throw new RuntimeException('this order cannot be closed');
    }
    $end = microtime(true) + $job['work_ms'] / 1000;
    while (($left = $end - microtime(true)) > 0) {
        if ($server->stopping) {
            throw new GivenBack();
        }
        $beat();
        usleep((int) (min($left, 0.05) * 1e6));
    }
    return (bool) $server->call('ZADD', "$queue:closed", 'GT', 'CH', $receipt, $job['order']);
}

function work(Server $server, string $queue): void
{
    $consumer = gethostname() . ':' . getmypid();
    $held = $done = [];
    $last = 0.0;
    $beat = function () use ($server, $queue, &$held, &$last): void {
        if ((microtime(true) - $last) * 1000 < LEASE_MS / 3) {
            return;
        }
        $last = microtime(true);
        try {
            $server->call('DQ.TOUCH', $queue, LEASE_MS, ...array_keys($held));
        } catch (RedisException $lost) {
            say('no heartbeat:', $lost->getMessage()); // the next one may come in time
        }
    };
    while (!$server->stopping) {
        $ack = $done ? ['ACK', count($done), ...$done] : [];
        $options = ['COUNT', 5, 'BLOCK', BLOCK_MS, 'LEASE', LEASE_MS, 'CONSUMER', $consumer];
        try {
            $batch = $server->insist('DQ.FETCH', $queue, ...$options, ...$ack);
        } catch (RedisException) {
            break;
        }
        $done = [];
        $last = microtime(true);
        foreach ($batch as [$id, $receipt]) {
            $held[$receipt] = $id;
        }
        foreach ($batch as [$id, $receipt, $attempt, $payload]) {
            try {
                if ($server->stopping) {
                    break; // still held: given back below
                }
                $closed = close_order($server, $queue, json_decode($payload, true), $receipt, $beat);
                $done[] = $receipt;
                say($closed ? 'done' : 'fenced', $id, 'attempt', $attempt);
            } catch (GivenBack) {
                break;
            } catch (Exception $error) {
                $server->insist('DQ.NACK', $queue, $receipt, 'ERROR', $error->getMessage());
                say('failed', $id, 'attempt', $attempt);
            }
            unset($held[$receipt]);
        }
    }
    if ($done) {
        $server->call('DQ.ACK', $queue, ...$done);
    }
    if ($held) {
        $server->call('DQ.NACK', $queue, ...array_keys($held), ...['SILENT']);
        say('gave back', ...array_values($held));
    }
}

[, $role, $url, $queue] = $argv;
$server = new Server($url);
pcntl_async_signals(true);
foreach ([SIGTERM, SIGINT] as $signal) {
    // Restarting system calls: the signal must not break the wait for a reply that may bring messages.
    pcntl_signal($signal, function () use ($server): void { $server->stopping = true; }, true);
}
if ($role === 'send') {
    send($server, $queue, (int) $argv[4], (int) ($argv[5] ?? 20));
} else {
    work($server, $queue);
}
