<?php

declare(strict_types=1);

namespace Dq\Think;

use Dq\Client;
use Dq\Held;
use Dq\LostWorkers;
use Dq\Message;
use Dq\Queue;
use Dq\UrlClient;
use Dq\Words;
use think\queue\Connector;

/**
 * The queue driver for think-queue: 'type' => '\Dq\Think\DqConnector' in config/queue.php.
 *
 * The queue `default` is the key `dq:default`. Every method is one command.
 */
class DqConnector extends Connector
{
    /** Jobs are tried again until think-queue gives them up: think-queue itself counts attempts. */
    private const RETRIES = ['retries' => -1];
    private const TYPE_LENGTH = 1024;
    /** A lease that never ends: ten thousand years, in ms. */
    private const NEVER = 315_360_000_000_000;

    private LostWorkers $lostWorkers;
    protected Held $held;

    /**
     * @param ?int $retryAfter seconds until a job whose worker is gone is given to another one; null: never
     * @param ?int $blockFor seconds for which a pop waits; null: not at all
     * @param int $lostWorkers after how many lost workers a job is dead; 0: never
     */
    public function __construct(
        protected Client $client,
        protected string $default = 'default',
        protected ?int $retryAfter = 60,
        protected ?int $blockFor = null,
        int $lostWorkers = LostWorkers::MOST,
    ) {
        $this->lostWorkers = new LostWorkers($lostWorkers);
        $this->held = new Held(static fn (): Client => $client instanceof UrlClient ? $client->fresh() : $client);
    }

    /** @param array<string, mixed> $config a connection of config/queue.php, with the names of the redis driver */
    public static function __make($config): static
    {
        $seconds = static fn ($value): ?int => $value === null ? null : (int) $value;
        $blockFor = $seconds($config['block_for'] ?? null);
        $password = (string) ($config['password'] ?? '');
        $url = sprintf(
            'redis://%s%s:%d/%d',
            $password === '' ? '' : rawurlencode((string) ($config['username'] ?? '')) . ':' . rawurlencode($password) . '@',
            $config['host'] ?? '127.0.0.1',
            $config['port'] ?? 6379,
            $config['select'] ?? 0,
        );
        $retryAfter = array_key_exists('retry_after', $config) ? $seconds($config['retry_after']) : 60;
        // If a reply came after the client's timeout, its job would be lost until its lease is over.
        $client = new UrlClient($url, ($blockFor ?? 0) + 10.0);
        $lostWorkers = (int) ($config['lost_workers'] ?? LostWorkers::MOST);
        return new static($client, $config['queue'] ?? 'default', $retryAfter, $blockFor, $lostWorkers);
    }

    public function size($queue = null)
    {
        return $this->on($queue)->len();
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->pushRaw($this->createPayload($job, $data), $queue);
    }

    /** @param array<string, mixed> $options options of DQ.SEND, such as group and priority */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $decoded = json_decode($payload, true);
        $type = $decoded['data']['commandName'] ?? $decoded['job'] ?? null;
        $fits = is_string($type) && $type !== '' && strlen($type) <= self::TYPE_LENGTH;
        $words = Words::of($options + self::RETRIES + ['type' => $fits ? $type : null]);
        $id = $this->on($queue)->do('SEND', $payload, ...$words);
        return $decoded['id'] ?? $id;
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        $due = match (true) {
            $delay instanceof \DateInterval => ['delay' => max(0, Words::span($delay))],
            $delay instanceof \DateTimeInterface => ['at' => max(0, Words::instant($delay))],
            default => $delay > 0 ? ['delay' => (int) round($delay * 1000)] : [],
        };
        return $this->pushRaw($this->createPayload($job, $data), $queue, $due);
    }

    public function pop($queue = null)
    {
        $on = $this->on($queue);
        $words = Words::of([
            'lease' => $this->retryAfter === null ? self::NEVER : max(1, $this->retryAfter * 1000),
            'block' => $this->blockFor === null ? null : max(1, $this->blockFor * 1000),
            'consumer' => gethostname() . ':' . getmypid(),
        ]);
        $reply = $this->client->call($on->key, ['DQ.FETCH', $on->key, ...$words], $this->blockFor !== null);
        if (!$reply) {
            return null;
        }
        $message = Message::read($on->key, $reply[0]);
        $givenUp = $this->lostWorkers->verdict($on, $message);
        if ($givenUp !== null) {
            $on->nack($message, ['fatal' => true, 'error' => $givenUp]);
            return null;
        }
        $this->held->add($message->queue, $message->receipt);
        return new DqJob($this->app, $on, $message, $this->connection, $queue ?: $this->default, $this->held);
    }

    /** Returns the queue of a name, for commands that think-queue does not know: pause, groups, schedules. */
    public function on(?string $queue): Queue
    {
        return new Queue($this->client, 'dq:' . ($queue ?: $this->default));
    }

    protected function createPayloadArray($job, $data = '')
    {
        return array_merge(parent::createPayloadArray($job, $data), ['id' => bin2hex(random_bytes(16)), 'attempts' => 0]);
    }
}
