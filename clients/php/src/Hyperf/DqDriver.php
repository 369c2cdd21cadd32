<?php

declare(strict_types=1);

namespace Dq\Hyperf;

use Dq\Client;
use Dq\LostWorkers;
use Dq\Message;
use Dq\Queue;
use Dq\Reply;
use Dq\ServerError;
use Dq\Words;
use Hyperf\AsyncQueue\Driver\Driver;
use Hyperf\AsyncQueue\JobInterface;
use Hyperf\AsyncQueue\JobMessage;
use Hyperf\AsyncQueue\MessageInterface;
use Hyperf\Redis\RedisFactory;
use Psr\Container\ContainerInterface;

/**
 * The driver for Hyperf's async-queue: 'driver' => \Dq\Hyperf\DqDriver::class in config/autoload/async_queue.php.
 *
 * The channel `queue` is the key `dq:queue`. Every method but `delete` is one command. The variable `data` of the
 * parent class is the delivery.
 */
class DqDriver extends Driver
{
    /** Jobs are tried again until Hyperf gives them up: it counts attempts by itself. */
    private const RETRIES = ['retries' => -1];

    protected Queue $queue;
    /** Seconds for which a pop waits. */
    protected int $timeout;
    /** Seconds until another attempt: a number, or a list with one for each attempt. */
    protected int|array $retrySeconds;
    /** Seconds until a job whose worker is gone is given to another one. */
    protected int $handleTimeout;
    protected LostWorkers $lostWorkers;
    /** @var \WeakMap<MessageInterface, Message> by which delivery a message came */
    private \WeakMap $deliveries;

    public function __construct(ContainerInterface $container, array $config)
    {
        parent::__construct($container, $config);
        $this->queue = new Queue($this->client($container, $config), 'dq:' . ($config['channel'] ?? 'queue'));
        $this->timeout = (int) ($config['timeout'] ?? 5);
        $this->retrySeconds = $config['retry_seconds'] ?? 10;
        $this->handleTimeout = (int) ($config['handle_timeout'] ?? 10);
        $this->lostWorkers = new LostWorkers((int) ($config['lost_workers'] ?? LostWorkers::MOST));
        $this->deliveries = new \WeakMap();
    }

    public function push(JobInterface $job, int $delay = 0): bool
    {
        $data = $this->packer->pack(new JobMessage($job));
        $options = self::RETRIES + ['delay' => $delay > 0 ? $delay * 1000 : null, 'type' => $job::class];
        return (bool) $this->queue->do('SEND', $data, ...Words::of($options));
    }

    /** Cancels the delayed jobs that are equal to this one. */
    public function delete(JobInterface $job): bool
    {
        $deleted = false;
        foreach ($this->queue->list('delayed', ['type' => $job::class]) as $record) {
            if ($this->packer->unpack($record['payload'])?->job() == $job) {
                $deleted = $this->queue->cancel($record['id']) !== [null] || $deleted;
            }
        }
        return $deleted;
    }

    public function pop(): array
    {
        $words = Words::of([
            'block' => max(1, $this->timeout * 1000),
            'lease' => max(1, $this->handleTimeout * 1000),
            'consumer' => gethostname() . ':' . getmypid(),
        ]);
        $key = $this->queue->key;
        $reply = $this->queue->client->call($key, ['DQ.FETCH', $key, ...$words], true);
        if (!$reply) {
            return [false, null];
        }
        $delivery = Message::read($key, $reply[0]);
        $givenUp = $this->lostWorkers->verdict($this->queue, $delivery);
        $message = $givenUp === null ? $this->packer->unpack($delivery->payload) : null;
        if (!$message) {
            $this->queue->nack($delivery, ['fatal' => true, 'error' => $givenUp ?? 'the job cannot be unpacked']);
            return [false, null];
        }
        // The payload does not contain the earlier attempts, and the message can only count them one by one.
        while ($message->getAttempts() < $delivery->attempt - 1) {
            $message->attempts();
        }
        $this->deliveries[$message] = $delivery;
        return [$delivery, $message];
    }

    public function ack($data): bool
    {
        return $this->queue->ack($data) === 1;
    }

    /** The job is dead: DQ.LIST shows it, `reload` makes it wait again. */
    public function fail($data): bool
    {
        return $this->queue->nack($data, ['fatal' => true]) === 1;
    }

    public function reload(?string $queue = null): int
    {
        return $queue === null || $queue === 'failed' ? $this->queue->redrive() : 0;
    }

    public function flush(?string $queue = null): bool
    {
        $states = ['failed' => 'dead', 'waiting' => 'ready', 'delayed' => 'delayed'];
        $state = $states[$queue ?? 'failed'] ?? null;
        return $state !== null && $this->queue->purge(['state' => $state]) > 0;
    }

    public function info(): array
    {
        try {
            $info = Reply::map($this->queue->do('INFO'));
        } catch (ServerError) {
            $info = []; // nothing was ever sent
        }
        $sum = static fn (string ...$states): int => array_sum(array_map(static fn ($state) => (int) ($info[$state] ?? 0), $states));
        return [
            'waiting' => $sum('ready', 'blocked'),
            'delayed' => $sum('delayed', 'retry'),
            'reserved' => $sum('running'),
            'failed' => $sum('dead'),
            'timeout' => 0, // a job whose worker is gone waits again
        ];
    }

    /** The message goes back as it is, in one step. Its attempts are counted by the server. */
    protected function retry(MessageInterface $message): bool
    {
        $seconds = $this->retrySeconds;
        if (is_array($seconds)) {
            $seconds = $seconds[$message->getAttempts() - 1] ?? end($seconds);
        }
        return $this->queue->nack($this->deliveries[$message], ['delay' => max(0, (int) ($seconds * 1000))]) === 1;
    }

    /** Called before `retry`. Nothing is removed, so nothing can get lost between the two. */
    protected function remove(mixed $data): bool
    {
        return true;
    }

    protected function client(ContainerInterface $container, array $config): Client
    {
        return new PoolClient($container->get(RedisFactory::class)->get($config['redis']['pool'] ?? 'default'));
    }
}
