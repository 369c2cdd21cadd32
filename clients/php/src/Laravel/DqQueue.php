<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Heartbeat;
use Dq\Message;
use Dq\Reply;
use Dq\ServerError;
use Dq\Words;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Contracts\Redis\Factory as Redis;
use Illuminate\Queue\Queue;
use Illuminate\Support\Str;

/**
 * A queue connection whose queues are dq queues: the name `default` is the key `dq:default`, after the prefix of the
 * Redis connection. Every method is one command.
 */
class DqQueue extends Queue implements QueueContract, ClearableQueue
{
    /** Jobs are tried again until Laravel gives them up: it counts attempts by itself. */
    private const RETRIES = ['retries' => -1];
    /** The longest TYPE and GROUP that the server takes. */
    private const NAME_LENGTH = 1024;
    /** A lease that never ends: ten thousand years, in ms. */
    private const NEVER = 315_360_000_000_000;

    /** @var list<string> the queues that a worker is about to ask for, one by one */
    private array $round = [];
    /** @var list<string> those that it will still ask for, though they were empty in the answer for the first */
    private array $empty = [];
    private ?Heartbeat $heart = null;

    /**
     * @param ?string $connection a connection of config/database.php
     * @param ?int $retryAfter seconds until a job whose worker is gone is given to another one; null: never
     * @param ?int $blockFor seconds for which a pop waits; null: not at all, 0: without end
     * @param ?bool $dispatchAfterCommit
     * @param bool $heartbeat whether a running job keeps its lease, so that `retryAfter` may be short
     */
    public function __construct(
        protected Redis $redis,
        protected string $default = 'default',
        protected ?string $connection = null,
        protected ?int $retryAfter = 60,
        protected ?int $blockFor = null,
        $dispatchAfterCommit = false,
        protected bool $heartbeat = false,
    ) {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
    }

    // ---- pushing ----------------------------------------------------------------------------------------------------

    public function push($job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, null);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, $delay);
    }

    /**
     * Jobs without a delay or a group of their own are sent as one command: all of them or none.
     *
     * @param array $jobs
     */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $collected = [];
        $collecting = true;
        foreach ((array) $jobs as $job) {
            if (isset($job->delay) || $this->groupOf($job) !== null) {
                $this->enqueue($job, $data, $queue, $job->delay ?? null);
                continue;
            }
            $send = function ($payload, $queue) use (&$collected, &$collecting) {
                if (!$collecting) {
                    return $this->pushRaw($payload, $queue); // a job that waited for its transaction
                }
                $collected[] = $payload;
                return json_decode($payload, true)['id'] ?? null;
            };
            $this->enqueueUsing($job, $this->createPayload($job, $this->getQueue($queue), $data), $queue, null, $send);
        }
        $collecting = false;
        if ($collected !== []) {
            $this->on($queue)->sendMany($collected, self::RETRIES);
        }
    }

    /**
     * @param string $payload
     * @param array<string, mixed> $options options of DQ.SEND, such as group and priority
     */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $decoded = json_decode($payload, true);
        $type = $decoded['displayName'] ?? null;
        $fits = is_string($type) && $type !== '' && strlen($type) <= self::NAME_LENGTH;
        // Neither the job's id nor its uuid is the message's: a job that is retried has the same again.
        $id = $this->on($queue)->do('SEND', $payload, ...Words::of($options + self::RETRIES + ['type' => $fits ? $type : null]));
        return $decoded['id'] ?? $id;
    }

    private function enqueue($job, $data, $queue, $delay)
    {
        $options = $this->due($delay) + ['group' => $this->groupOf($job)];
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $this->getQueue($queue), $data, $delay),
            $queue,
            $delay,
            fn ($payload, $queue) => $this->pushRaw($payload, $queue, $options),
        );
    }

    /** Returns when a job is due: a number of seconds counts on the server's clock, a point in time is one. */
    private function due($delay): array
    {
        return match (true) {
            $delay instanceof \DateInterval => ['delay' => max(0, Words::span($delay))],
            $delay instanceof \DateTimeInterface => ['at' => max(0, Words::instant($delay))],
            default => $delay > 0 ? ['delay' => (int) round($delay * 1000)] : [],
        };
    }

    /** Returns the group of a job: its `messageGroup`, a property or a method. Jobs of a group run in their order. */
    private function groupOf($job): ?string
    {
        if (!is_object($job)) {
            return null;
        }
        $group = method_exists($job, 'messageGroup') ? $job->messageGroup() : ($job->messageGroup ?? null);
        return $group === null || $group === '' ? null : (string) $group;
    }

    protected function createPayloadArray($job, $queue, $data = '')
    {
        return array_merge(parent::createPayloadArray($job, $queue, $data), ['id' => Str::random(32), 'attempts' => 0]);
    }

    // ---- popping ----------------------------------------------------------------------------------------------------

    /** Says that `pop` will be called for each of these queues (`high,low`), until one of them gives a job. */
    public function aboutToPop(string $queues): void
    {
        $this->round = explode(',', $queues);
        $this->empty = [];
    }

    /**
     * Returns the next job of a queue, or of the first of several (`high,low`) that has one.
     *
     * @param ?string $queue
     * @param int $index the place of the queue in the worker's round; newer releases of Laravel give it
     */
    public function pop($queue = null, $index = 0): ?DqJob
    {
        $name = $queue ?: $this->default;
        if (in_array($name, $this->empty, true)) {
            $this->empty = array_values(array_diff($this->empty, [$name]));
            return null;
        }
        $names = explode(',', $name);
        if ($name === ($this->round[0] ?? null)) {
            $names = $this->round;
            $this->round = [];
        }
        $message = count($names) === 1 ? $this->fetch($names[0]) : $this->fetchFirst($names);
        if ($message === null) {
            $this->empty = array_slice($names, 1);
            return null;
        }
        $this->keep($message);
        $keys = array_combine(array_map(fn ($name) => $this->on($name)->key, $names), $names);
        return new DqJob($this->container, $this, $message, $this->connectionName, $keys[$message->key]);
    }

    private function fetch(string $name): ?Message
    {
        $queue = $this->on($name);
        $words = ['DQ.FETCH', $queue->key, ...Words::of($this->fetchOptions())];
        $reply = $queue->client->call($queue->key, $words, $this->blockFor !== null);
        return $reply ? Message::read($queue->key, $reply[0]) : null;
    }

    /** @param list<string> $names */
    private function fetchFirst(array $names): ?Message
    {
        $keys = array_map(fn ($name) => $this->on($name)->key, $names);
        $words = ['DQ.MFETCH', count($keys), ...$keys, ...Words::of($this->fetchOptions())];
        $reply = $this->client()->call($keys[0], $words, $this->blockFor !== null);
        return $reply ? Message::read($reply[0], $reply[1][0]) : null;
    }

    private function fetchOptions(): array
    {
        return [
            'lease' => $this->lease(),
            'block' => $this->block(),
            'consumer' => gethostname() . ':' . getmypid(),
        ];
    }

    /** Returns the length of a lease in ms. */
    public function lease(): int
    {
        return $this->retryAfter === null ? self::NEVER : max(1, $this->retryAfter * 1000);
    }

    /**
     * Returns for how many ms a pop waits. It is less than the time that the connection waits for a reply: a job in a
     * reply that nobody reads would be lost until its lease is over.
     */
    private function block(): ?int
    {
        if ($this->blockFor === null) {
            return null;
        }
        $wanted = $this->blockFor * 1000;
        $limit = (int) ($this->client()->readTimeout() * 900);
        return $limit > 0 && ($wanted === 0 || $wanted > $limit) ? $limit : $wanted;
    }

    private function keep(Message $message): void
    {
        if ($this->heartbeat && Heartbeat::isPossible()) {
            // A connection of its own, because the child must not use that of this process.
            $connect = fn () => new RedisClient($this->redis->resolve($this->connection));
            $this->heart ??= new Heartbeat($connect, $this->lease());
            $this->heart->keep($message);
        }
    }

    /** Says that the job of this message is over. */
    public function drop(Message $message): void
    {
        $this->heart?->drop($message);
    }

    // ---- looking and clearing ---------------------------------------------------------------------------------------

    /** Returns the number of jobs: waiting, delayed and running. */
    public function size($queue = null): int
    {
        return $this->on($queue)->len();
    }

    /** Returns the number of jobs that could run now. */
    public function pendingSize($queue = null): int
    {
        return $this->states($queue, 'ready', 'blocked');
    }

    /** Returns the number of jobs whose time has not come. */
    public function delayedSize($queue = null): int
    {
        return $this->states($queue, 'delayed', 'retry');
    }

    /** Returns the number of jobs that workers have. */
    public function reservedSize($queue = null): int
    {
        return $this->on($queue)->len('running');
    }

    /** Returns when (Unix seconds) the job was sent that has been ready for the longest time, or null. */
    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        [, $oldest] = $this->on($queue)->do('LIST', 'ready', 'COUNT', 1);
        return $oldest === [] ? null : intdiv((int) Reply::map($oldest[0])['sent-at'], 1000);
    }

    /** Removes all jobs of a queue. Returns how many. */
    public function clear($queue): int
    {
        return $this->on($queue)->purge();
    }

    private function states(?string $queue, string ...$states): int
    {
        $info = Reply::map($this->infoOf($queue));
        return array_sum(array_map(static fn ($state) => (int) ($info[$state] ?? 0), $states));
    }

    private function infoOf(?string $queue): array
    {
        try {
            return $this->on($queue)->do('INFO');
        } catch (ServerError $error) {
            if (str_contains($error->getMessage(), 'no such queue')) {
                return [];
            }
            throw $error;
        }
    }

    // ---- what it is made of -----------------------------------------------------------------------------------------

    /** Returns the queue of a name, for commands that Laravel does not know: pause, groups, schedules. */
    public function on(?string $queue): \Dq\Queue
    {
        $client = $this->client();
        return new \Dq\Queue($client, $client->prefixed($this->getQueue($queue)));
    }

    /** Returns the key of a queue, without the prefix of the connection. */
    public function getQueue($queue): string
    {
        return 'dq:' . ($queue ?: $this->default);
    }

    /** @return \Illuminate\Redis\Connections\Connection */
    public function getConnection()
    {
        return $this->redis->connection($this->connection);
    }

    /** @return \Illuminate\Contracts\Redis\Factory */
    public function getRedis()
    {
        return $this->redis;
    }

    private function client(): RedisClient
    {
        return new RedisClient($this->getConnection());
    }
}
