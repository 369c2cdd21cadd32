#!/usr/bin/env php
<?php
/*
 * Messages of Symfony Messenger on dq: each falls due at its own millisecond, some fail at first, and a consumer is
 * killed at its work.
 *
 * The messages close orders. Consumers (Symfony's own worker, separate processes) wait in the server until one is due.
 * Every fifth handler throws in its first attempt, and the message is retried by Symfony's retry strategy. Some can never
 * succeed: they end in the failure transport. The first consumer is killed with a message in its hands; the message is
 * redelivered when redeliver_timeout is over.
 *
 * Run it against a server that has the module loaded:
 *
 *     apt-get install php-cli php-redis php-symfony-messenger php-symfony-event-dispatcher
 *     php messages.php --host=127.0.0.1 --port=6379 --messages=60 --workers=3
 *
 * In an application of Symfony only three things of this file are needed: the DSN, the service of the factory, and the
 * messages. It prints what came out, and the exit code is 1 if a promise was broken.
 */

declare(strict_types=1);

require __DIR__ . '/../../clients/php/autoload.php';
if (is_file(__DIR__ . '/vendor/autoload.php')) {
    require __DIR__ . '/vendor/autoload.php';
} else {
    foreach (['Symfony/Component/Messenger', 'Symfony/Component/EventDispatcher', 'Psr/Container'] as $package) {
        require_once "/usr/share/php/$package/autoload.php";
    }
}

use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

$options = getopt('', ['host:', 'port:', 'messages:', 'workers:']) + ['host' => '127.0.0.1', 'port' => '6379', 'messages' => '60', 'workers' => '3'];
$run = 'example:symfony:' . getmypid();

function now_ms(): int
{
    return (int) (microtime(true) * 1000);
}

/** The message: an order that is to be closed at its time. */
final class CloseOrder
{
    public function __construct(public int $order, public int $due)
    {
    }
}

final class Services implements Psr\Container\ContainerInterface
{
    /** @param array<string, object> $services */
    public function __construct(private array $services)
    {
    }

    public function get(string $id): object
    {
        return $this->services[$id];
    }

    public function has(string $id): bool
    {
        return isset($this->services[$id]);
    }
}

function redis(array $options): Redis
{
    $redis = new Redis();
    $redis->connect($options['host'], (int) $options['port']);
    return $redis;
}

/** MESSENGER_TRANSPORT_DSN=dq://localhost:6379/messages?redeliver_timeout=2&block=500 */
function transport(array $options, string $queue): DqTransport
{
    $dsn = sprintf('dq://%s:%d/%s?redeliver_timeout=2&block=500', $options['host'], $options['port'], rawurlencode($queue));
    return (new DqTransportFactory())->createTransport($dsn, [], new PhpSerializer());
}

/** Does what `bin/console messenger:consume async` does, in a process of its own. */
function start_worker(array $options, string $run): int
{
    $child = pcntl_fork();
    if ($child !== 0) {
        return $child;
    }
    pcntl_async_signals(true);
    $redis = redis($options);
    $async = transport($options, "$run:async");
    $failed = transport($options, "$run:failed");
    $handler = function (CloseOrder $message) use ($redis, $run): void {
        $attempt = $redis->hIncrBy("$run:attempts", (string) $message->order, 1);
        $redis->rPush("$run:starts", json_encode([$message->order, $message->due, now_ms(), $attempt, getmypid()]));
        usleep(20_000);
        if ($message->order % 20 === 7 || ($message->order % 5 === 0 && $attempt === 1)) {
            throw new RuntimeException("order $message->order cannot be closed");
        }
        $redis->sAdd("$run:closed", $message->order);
    };
    $events = new EventDispatcher();
    $events->addSubscriber(new SendFailedMessageForRetryListener(
        new Services(['async' => $async]),
        new Services(['async' => new MultiplierRetryStrategy(2, 100)]),
    ));
    $events->addSubscriber(new SendFailedMessageToFailureTransportListener(new Services(['async' => $failed])));
    $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([CloseOrder::class => [$handler]]))]);
    $worker = new Worker(['async' => $async], $bus, $events);
    // Symfony 5.4 has a listener for this. Since 7.0 there is none, because the console command does it.
    pcntl_signal(SIGTERM, fn () => $worker->stop());
    $worker->run();
    exit(0);
}

$workers = [];
for ($n = 0; $n < (int) $options['workers']; $n++) {
    $workers[] = start_worker($options, $run);
}

$redis = redis($options);
$async = transport($options, "$run:async");
$failed = transport($options, "$run:failed");
$messages = (int) $options['messages'];
for ($n = 1; $n <= $messages; $n++) {
    $delay = random_int(1, 1500);
    $async->send(new Envelope(new CloseOrder($n, now_ms() + $delay), [new DelayStamp($delay)]));
}
$hopeless = count(array_filter(range(1, $messages), fn ($n) => $n % 20 === 7));

// Kill a consumer in the middle of a message that will succeed: one that has started a message last, a moment ago.
$killed = null;
$end = microtime(true) + 30;
$ended = fn (): int => $redis->sCard("$run:closed") + $failed->getMessageCount();
while (($ended() < $messages || $async->queue()->len() > 0) && microtime(true) < $end) {
    $last = json_decode((string) $redis->lIndex("$run:starts", -1), true);
    $succeeds = $last !== null && $last[0] % 5 !== 0 && $last[0] % 20 !== 7;
    if ($killed === null && $succeeds && $redis->lLen("$run:starts") > $messages / 3 && now_ms() - $last[2] < 10) {
        posix_kill($last[4], SIGKILL);
        pcntl_waitpid($last[4], $status);
        $workers = array_diff($workers, [$last[4]]);
        $killed = $last[4];
    }
    usleep(2000);
}
foreach ($workers as $worker) {
    posix_kill($worker, SIGTERM);
    pcntl_waitpid($worker, $status);
}

$starts = array_map(fn ($line) => json_decode($line, true), $redis->lRange("$run:starts", 0, -1));
$first = array_filter($starts, fn ($start) => $start[3] === 1);
$lateness = array_map(fn ($start) => $start[2] - $start[1], $first);
sort($lateness);
$early = count(array_filter($lateness, fn ($ms) => $ms < 0));
$left = $async->queue()->len();
$closed = $redis->sCard("$run:closed");
$gaveUp = $failed->getMessageCount();
printf("messages sent         %d\n", $messages);
printf("orders closed         %d\n", $closed);
printf("in failure transport  %d\n", $gaveUp);
printf("consumers killed      %d\n", $killed === null ? 0 : 1);
printf("handled again         %d\n", count($starts) - $messages);
printf("started too early     %d\n", $early);
printf("lateness, ms          p50 %d, max %d\n", $lateness[intdiv(count($lateness), 2)] ?? 0, end($lateness));
printf("messages left         %d\n", $left);
$kept = $closed + $gaveUp === $messages && $gaveUp === $hopeless && $early === 0 && $left === 0 && $killed !== null;
$redis->unlink("$run:closed", "$run:starts", "$run:attempts", "$run:async", "$run:failed");
echo $kept ? "all promises kept\n" : "A PROMISE WAS BROKEN\n";
exit($kept ? 0 : 1);
