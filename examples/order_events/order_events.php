#!/usr/bin/env php
<?php
/*
 * The events of each order, in the order in which they happened: the same as order_events.py, in PHP.
 *
 * Several producers push JSON events as they are with DQ.GROUPPUSH, out of order; each becomes due a settling time
 * after its q_time, when everything that happened before it has arrived. Many workers, separate processes, started
 * when half of the events are there already, handle them: never two of one order at once, always by q_time. The
 * second worker throws now and then, the first is killed while it works.
 *
 * Run it against a server that has the module loaded:
 *
 *     apt-get install php-cli php-redis
 *     php order_events.php --host=127.0.0.1 --port=6379 --orders=100 --events=6
 *
 * Options: --host (or the path of a unix socket, with --port=0), --port, --orders, --events (one second apart),
 * --settle-ms (how late an event may arrive), --handler-ms, --workers. It prints the sequence handled for each
 * order (`1!`: the handler threw, `1x`: it was killed) and the count of violations; the exit code is 1 if there is
 * one.
 */

declare(strict_types=1);

const LEASE_MS = 1500;
const BACKOFF_MS = 1000;
const PRODUCERS = 3;

$given = getopt('', ['host:', 'port:', 'orders:', 'events:', 'settle-ms:', 'handler-ms:', 'workers:']);
$options = $given + ['host' => '127.0.0.1', 'port' => '6379', 'orders' => '100', 'events' => '6', 'settle-ms' => '2500',
    'handler-ms' => '5', 'workers' => '6'];
$options['queue'] = 'orders:events:' . getmypid();

function now_ms(): float
{
    return microtime(true) * 1000;
}

function sleep_ms(float $ms): void
{
    if ($ms > 0) {
        usleep((int) ($ms * 1000));
    }
}

function connect(array $options): Redis
{
    $redis = new Redis();
    $redis->connect($options['host'], (int) $options['port']);
    return $redis;
}

/** rawCommand, with an error reply as an exception. */
function call(Redis $redis, string|int ...$words): mixed
{
    $redis->clearLastError();
    $reply = $redis->rawCommand(...$words);
    if ($redis->getLastError() !== null) {
        throw new RedisException($redis->getLastError());
    }
    return $reply;
}

/** A line for what a process did. A line written survives the process, even if it is killed. */
function journal(string $folder, string $name, array $line): void
{
    file_put_contents("$folder/$name", json_encode($line + ['at' => hrtime(true)]) . "\n", FILE_APPEND);
}

/** All lines of the journals of that prefix, in order of time: hrtime() is one clock for all processes. */
function read_journals(string $folder, string $prefix): array
{
    $lines = [];
    foreach (glob("$folder/$prefix*") as $path) {
        foreach (file($path) as $line) {
            $lines[] = json_decode($line, true);
        }
    }
    usort($lines, fn ($a, $b) => $a['at'] <=> $b['at']);
    return $lines;
}

/** Events as [time of arrival, due time, event], the same in each producer: they share the seed. */
function make_events(array $options, float $start): array
{
    mt_srand(1);
    $events = [];
    for ($order = 0; $order < $options['orders']; $order++) {
        for ($status = 1; $status <= $options['events']; $status++) {
            $q_time = intdiv((int) $start, 1000) + 1 + $order % 2 + $status;
            $event = [
                'reqId' => sprintf('%08x-d619-4f31-8ffb-%012x', mt_rand(), count($events)),
                'user_id' => 1000 + intdiv($order, 3),
                'order_id' => 2302393013 + $order,
                'data' => ['status' => $status],
                'q_time' => $q_time,
            ];
            $late = mt_rand(0, (int) ($options['settle-ms'] * 0.8));
            $events[] = [$q_time * 1000 + $late, $q_time * 1000 + (int) $options['settle-ms'], $event];
        }
    }
    usort($events, fn ($a, $b) => $a[0] <=> $b[0]);
    return $events;
}

function produce(array $options, string $folder, int $number, float $start): void
{
    $redis = connect($options);
    foreach (make_events($options, $start) as $index => [$arrives, $due, $event]) {
        if ($index % PRODUCERS !== $number) {
            continue;
        }
        sleep_ms($arrives - now_ms());
        $push = ['DQ.GROUPPUSH', $options['queue'], json_encode($event), 'GROUPBY', 2, 'user_id', 'order_id',
            'IDPATH', 'reqId', 'SCOREPATH', 'q_time', 'AT', $due];
        [$group] = call($redis, ...$push);
        // Every twentieth producer is not sure that it worked. A repeated id is refused with null.
        $again = $index % 20 === 0;
        $refused = $again && !call($redis, ...$push);
        $line = ['group' => $group, 'status' => $event['data']['status'], 'again' => $again, 'refused' => $refused];
        journal($folder, "producer-$number", $line);
    }
}

function consume(array $options, string $folder, int $number): void
{
    $name = "worker-$number";
    $running = true;
    pcntl_async_signals(true);
    // Without restart_syscalls the signal would break the wait for a reply; as it is, the fetch ends in its own time.
    pcntl_signal(SIGTERM, function () use (&$running) { $running = false; }, true);
    mt_srand($number);
    $redis = connect($options);
    $done = [];
    while ($running) {
        $ack = $done ? ['ACK', count($done), ...$done] : [];
        $batch = call($redis, 'DQ.FETCH', $options['queue'], 'BLOCK', 500, 'CONSUMER', $name, ...$ack);
        $done = [];
        foreach ($batch as [$id, $receipt, $attempt, $payload]) {
            $event = json_decode($payload, true);
            $line = ['group' => "{$event['user_id']}_{$event['order_id']}", 'status' => $event['data']['status']];
            journal($folder, $name, ['what' => 'begin'] + $line);
            try {
                sleep_ms((float) $options['handler-ms']);
                if ($number === 1 && mt_rand(1, 5) === 1) {
                    throw new RuntimeException('no connection to the warehouse');
                }
                journal($folder, $name, ['what' => 'done'] + $line);
                $done[] = $receipt;
            } catch (RuntimeException $error) {
                journal($folder, $name, ['what' => 'failed'] + $line);
                call($redis, 'DQ.NACK', $options['queue'], $receipt, 'ERROR', $error->getMessage());
            }
        }
    }
    if ($done) {
        call($redis, 'DQ.ACK', $options['queue'], ...$done);
    }
}

/** SIGKILLs the worker at a moment when it handles an event; false if it never did. */
function kill_at_work(int $pid, string $folder, string $name): bool
{
    for ($try = 0; $try < 2000; $try++) {
        posix_kill($pid, SIGSTOP);
        $lines = read_journals($folder, $name);
        $last = end($lines);
        if ($last && $last['what'] === 'begin') {
            posix_kill($pid, SIGKILL);
            pcntl_waitpid($pid, $status);
            journal($folder, $name, ['what' => 'killed', 'group' => $last['group'], 'status' => $last['status']]);
            return true;
        }
        posix_kill($pid, SIGCONT);
        sleep_ms(2);
    }
    return false;
}

/** The violations of one order, by its journal lines in order of time. */
function check(array $lines, int $events): array
{
    $violations = $handled = [];
    $current = null;
    foreach ($lines as $line) {
        if ($line['what'] === 'begin') {
            if ($current) {
                $violations[] = "{$line['status']} began while {$current['status']} was being handled";
            }
            if ($line['status'] !== count($handled) + 1) {
                $violations[] = "{$line['status']} began after " . implode(' ', $handled);
            }
            $current = $line;
        } else {
            $current = null;
            if ($line['what'] === 'done') {
                $handled[] = $line['status'];
            }
        }
    }
    if ($handled !== range(1, $events)) {
        $violations[] = 'handled ' . implode(' ', $handled) . " of 1 to $events";
    }
    return $violations;
}

/** Prints what happened; returns the exit code. */
function report(array $options, string $folder, bool $killed): int
{
    $pushed = read_journals($folder, 'producer');
    $handled = read_journals($folder, 'worker');
    $marks = ['done' => '', 'failed' => '!', 'killed' => 'x'];
    $violations = 0;
    $arrival = $lines = [];
    foreach ($pushed as $line) {
        $arrival[$line['group']][] = $line['status'];
    }
    foreach ($handled as $line) {
        $lines[$line['group']][] = $line;
    }
    ksort($arrival);
    $disordered = 0;
    foreach ($arrival as $group => $statuses) {
        $sequence = '';
        foreach ($lines[$group] ?? [] as $line) {
            $sequence .= isset($marks[$line['what']]) ? " {$line['status']}{$marks[$line['what']]}" : '';
        }
        $found = check($lines[$group] ?? [], (int) $options['events']);
        $violations += count($found);
        printf("%-20s%s%s\n", $group, ltrim($sequence), $found ? '   VIOLATION: ' . implode('; ', $found) : '');
        $sorted = $statuses;
        sort($sorted);
        $disordered += (int) ($sorted !== $statuses);
    }
    $count = fn (string $what): int => count(array_filter($handled, fn ($line) => $line['what'] === $what));
    $again = count(array_filter($pushed, fn ($line) => $line['again']));
    $refused = count(array_filter($pushed, fn ($line) => $line['refused']));
    $lost = $options['orders'] * $options['events'] - $count('done');
    printf("orders                     %d\n", count($arrival));
    printf("events pushed              %d by %d producers\n", count($pushed), PRODUCERS);
    printf("orders pushed out of order %d\n", $disordered);
    printf("pushed again, refused      %d, %d\n", $again, $refused);
    printf("handlers that threw        %d\n", $count('failed'));
    printf("workers killed at work     %d\n", (int) $killed);
    printf("events lost                %d   (must be 0)\n", $lost);
    printf("violations                 %d   (must be 0)\n", $violations);
    return $violations || $lost || !$killed || $again !== $refused ? 1 : 0;
}

/** Runs `$role` in a process of its own; returns its pid. */
function start(callable $role): int
{
    $pid = pcntl_fork();
    if ($pid === 0) {
        $role();
        exit(0);
    }
    return $pid;
}

$folder = sys_get_temp_dir() . '/order-events-' . getmypid();
mkdir($folder);
// RETRIES -1: an event that fails is tried again for ever, as nothing of its order may overtake it. DEDUP keeps the id
// of a handled event for a minute, so that a late repetition of its push is refused too.
$settings = ['LEASE', LEASE_MS, 'RETRIES', -1, 'BACKOFF', 'FIXED', BACKOFF_MS, 'DEDUP', 60000];
call(connect($options), 'DQ.CREATE', $options['queue'], ...$settings);
$start = now_ms() + 200;
$producers = $workers = [];
for ($number = 0; $number < PRODUCERS; $number++) {
    $producers[] = start(fn () => produce($options, $folder, $number, $start));
}
// The first events are three seconds ahead of the start.
sleep_ms(3000 + $options['settle-ms'] + $options['events'] * 500);
for ($number = 0; $number < $options['workers']; $number++) {
    $workers[] = start(fn () => consume($options, $folder, $number));
}
$killed = kill_at_work($workers[0], $folder, 'worker-0');
foreach ($producers as $pid) {
    pcntl_waitpid($pid, $status);
}
$redis = connect($options);
$end = now_ms() + $options['settle-ms'] + LEASE_MS + $options['events'] * 1000 + 10000;
while (call($redis, 'DQ.LEN', $options['queue']) > 0 && now_ms() < $end) {
    sleep_ms(50);
}
foreach (array_slice($workers, $killed ? 1 : 0) as $pid) {
    posix_kill($pid, SIGTERM);
    pcntl_waitpid($pid, $status);
}
$code = report($options, $folder, $killed);
$redis->unlink($options['queue']);
array_map('unlink', glob("$folder/*"));
rmdir($folder);
exit($code);
