<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Coding;
use Dq\Effects;
use Dq\Heartbeat;
use Dq\Held;
use Dq\LostWorkers;
use Dq\Message;
use Dq\Outbox\Outbox;
use Dq\Reject;
use Dq\Reply;
use Dq\Retrying;
use Dq\Words;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Contracts\Redis\Factory as Redis;
use Illuminate\Queue\Queue;

/**
 * A queue connection whose queues are dq queues: the name `default` is the key `dq:default`, after the prefix of the
 * Redis connection. Every method is one command. A worker's whole job is one, too: the ack of a finished job goes with the
 * `pop` of the next one.
 */
class DqQueue extends Queue implements QueueContract, ClearableQueue
{
    use Counts;
    use JobOptions;
    use Pushes;

    /** Jobs are tried again until Laravel gives them up: Laravel itself counts attempts. */
    private const RETRIES = ['retries' => -1];
    /** The longest TYPE and GROUP that the server accepts. */
    private const NAME_LENGTH = 1024;
    /** A lease that never ends: ten thousand years, in ms. */
    private const NEVER = 315_360_000_000_000;
    /** A command is repeated for this many ms after the connection was lost. */
    private const PATIENCE = 10_000;
    /** A worker that stops repeats a command for this many ms. */
    private const LAST_WORDS = 1_500;

    /** @var list<string> the queues that a worker is about to ask for, one by one */
    private array $round = [];
    /** @var list<string> those that it will still ask for, though they were empty in the answer for the first */
    private array $empty = [];
    private ?Heartbeat $heart = null;
    private Held $held;
    private LostWorkers $lostWorkers;
    private AckBuffer $acks;
    private bool $stops = false;
    private ?Outbox $madeOutbox = null;

    /**
     * @param ?string $connection a connection of config/database.php
     * @param ?int $retryAfter seconds until a job whose worker is gone is given to another one; null: never
     * @param ?int $blockFor seconds for which a pop waits; null: not at all, 0: without end
     * @param ?bool $dispatchAfterCommit
     * @param bool $heartbeat whether a running job keeps its lease, so that `retryAfter` may be short
     * @param bool $ackWithNext whether the command that fetches the next job acks the one before
     * @param int $lostWorkers after how many lost workers a job has failed; 0: never
     * @param ?\Closure(self): Outbox $outbox makes the outbox, if jobs go through one
     * @param ?Coding $secrets encrypts jobs
     */
    public function __construct(
        protected Redis $redis,
        protected string $default = 'default',
        protected ?string $connection = null,
        protected ?int $retryAfter = 60,
        protected ?int $blockFor = null,
        $dispatchAfterCommit = false,
        protected bool $heartbeat = false,
        protected bool $ackWithNext = true,
        int $lostWorkers = LostWorkers::MOST,
        private ?\Closure $outbox = null,
        private ?Coding $secrets = null,
    ) {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
        $this->lostWorkers = new LostWorkers($lostWorkers);
        $this->held = new Held($this->fresh(...));
        $ack = fn (Message $message): mixed => $this->repeat($message->queue, ['DQ.ACK', $message->queue, $message->receipt]);
        $this->acks = new AckBuffer($ack, $this->drop(...));
    }

    // ---- popping ----------------------------------------------------------------------------------------------------

    /** Notes that `pop` will be called for each of these queues (`high,low`), until one of them gives a job. */
    public function aboutToPop(string $queues): void
    {
        $this->round = explode(',', $queues);
        $this->empty = [];
        $this->acks->roundBegins();
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
        $client = $this->client();
        $keys = [];
        foreach ($names as $one) {
            $keys[$client->prefixed($this->getQueue($one))] = $one;
        }
        $message = $this->next(array_keys($keys));
        if ($message === null) {
            $this->empty = array_slice($names, 1);
            return null;
        }
        $this->keep($message);
        $givenUp = $this->lostWorkers->verdict(new \Dq\Queue($client, $message->queue), $message);
        return new DqJob($this->container, $this, $message, $this->connectionName, $keys[$message->queue], $givenUp);
    }

    /** @param list<string> $keys */
    private function next(array $keys): ?Message
    {
        $isOnly = count($keys) === 1;
        $finished = $this->acks->forFetchFrom($keys[0]);
        if ($finished !== null) {
            // If there are several queues, the first one is asked alone. Only if it is empty, the worker waits for all
            // of them together.
            $message = $this->fetch([$keys[0]], ['ack' => [$finished]] + ($isOnly ? [] : ['block' => null]));
            $this->acks->done();
            if ($message !== null || $isOnly) {
                return $message;
            }
        }
        $this->acks->flush();
        return $this->fetch($keys);
    }

    /**
     * Fetches a job. What is none, or what nobody with a key has sent to this queue, stays there as a dead message.
     *
     * @param list<string> $keys
     */
    private function fetch(array $keys, array $options = []): ?Message
    {
        while (($message = $this->delivered($keys, $options)) !== null) {
            try {
                $message = $this->secrets?->opened($message) ?? $message;
                self::mustBeJob($message->payload);
                return $message;
            } catch (Reject $refused) {
                $words = ['DQ.NACK', $message->queue, $message->receipt, 'FATAL', 'ERROR', $refused->getMessage()];
                $this->repeat($message->queue, $words);
                if ($this->container->bound(ExceptionHandler::class)) {
                    $this->container->make(ExceptionHandler::class)->report($refused);
                }
                unset($options['ack']);
            }
        }
        return null;
    }

    /** Laravel takes these parts for granted: its worker would end, or never settle the message. */
    private static function mustBeJob(string $payload): void
    {
        $job = json_decode($payload, true);
        $isJob = is_array($job) && is_string($job['job'] ?? '') && is_scalar($job['id'] ?? '') && is_scalar($job['backoff'] ?? '');
        foreach (['maxTries', 'maxExceptions', 'timeout', 'retryUntil'] as $number) {
            $isJob = $isJob && is_numeric($job[$number] ?? 0);
        }
        if (!$isJob) {
            throw new Reject('no job of Laravel: ' . substr(mb_scrub($payload), 0, 100));
        }
    }

    /** @param list<string> $keys */
    private function delivered(array $keys, array $options): ?Message
    {
        $isOnly = count($keys) === 1;
        $options += [
            'lease' => $this->lease(),
            'block' => $this->block(),
            'consumer' => gethostname() . ':' . getmypid(),
            // When the command is repeated, the server delivers the job of a lost reply once more.
            'token' => bin2hex(random_bytes(8)),
            // The key of a message is in its headers.
            'with_meta' => $hasMeta = $this->secrets !== null,
        ];
        $words = [...($isOnly ? ['DQ.FETCH'] : ['DQ.MFETCH', count($keys)]), ...$keys, ...Words::of($options)];
        $read = static fn (mixed $reply): array => match (true) {
            $isOnly => Message::all($keys[0], $reply, $hasMeta),
            default => $reply ? Message::all(...Reply::pair($reply), hasMeta: $hasMeta) : [],
        };
        $asked = microtime(true);
        $message = $this->repeat($keys[0], $words, $options['block'] !== null, $read)[0] ?? null;
        if ($message !== null) {
            $touch = fn (): mixed => $this->client()->call($message->queue, ['DQ.TOUCH', $message->queue, $this->lease(), $message->receipt]);
            Retrying::renewLate($asked, $this->lease(), $touch, $this->patience(...));
        }
        return $message;
    }

    /**
     * Runs a command that may be run twice, and repeats it if the connection is lost. An exception would end the worker, or
     * make it run a job again that is done.
     *
     * @param list<string|int> $words
     * @param ?\Closure(mixed): mixed $read reads the reply
     */
    private function repeat(string $key, array $words, bool $waits = false, ?\Closure $read = null): mixed
    {
        $command = function () use ($key, $words, $waits, $read): mixed {
            $reply = $this->client()->call($key, $words, $waits);
            return $read === null ? $reply : $read($reply);
        };
        return Retrying::run($command, $this->patience(...));
    }

    /** How long errors that may pass are waited out, in ms. */
    private function patience(): int
    {
        return $this->isStopping() ? self::LAST_WORDS : self::PATIENCE;
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
        $this->held->add($message->queue, $message->receipt);
        if ($this->heartbeat && Heartbeat::isPossible()) {
            // A connection of its own, because the child must not use that of this process.
            $this->heart ??= new Heartbeat($this->fresh(...), $this->lease());
            $this->heart->keep($message);
        }
    }

    // ---- finishing --------------------------------------------------------------------------------------------------

    /** Notes that the job of this message has ended, so that its lease is no longer extended. */
    public function drop(Message $message): void
    {
        $this->held->remove($message->queue, $message->receipt);
        $this->heart?->drop($message);
    }

    /**
     * Acks a job. If its lease is over, another worker has it, and nothing happens.
     *
     * @param bool $isLast whether the worker has nothing more to do for the job, so that its ack may wait for the next pop
     */
    public function finish(Message $message, bool $isLast): void
    {
        $this->held->remove($message->queue, $message->receipt);
        $this->acks->add($message, $isLast && $this->ackWithNext && !$this->isResting());
    }

    /** Acks a job together with its effects. If its lease is over, nothing is written. */
    public function apply(Message $message, Effects $effects): void
    {
        $this->acks->flush();
        $words = ['DQ.ACK', $message->queue, $message->receipt, ...$effects->words($this->client())];
        $effects->keep($this->repeat($message->queue, $words));
        $this->drop($message);
    }

    /** Gives a job back for another attempt, in this many ms. */
    public function release(Message $message, int $delay): void
    {
        $this->acks->flush();
        $this->drop($message);
        // Not SILENT: that would not count the attempt, and Laravel gives a job up by its attempts.
        $this->repeat($message->queue, ['DQ.NACK', $message->queue, $message->receipt, 'DELAY', $delay]);
    }

    /** Makes the lease of a job end this many ms from now. Returns false if it was over. */
    public function extend(Message $message, int $lease): bool
    {
        $this->acks->flush();
        return $this->repeat($message->queue, ['DQ.TOUCH', $message->queue, $lease, $message->receipt]) === 1;
    }

    /** Notes that the worker stops. An ack that waits for the next pop goes out. */
    public function stops(): void
    {
        $this->stops = true;
        try {
            $this->acks->flush();
        } finally {
            $this->stops = false;
        }
    }

    private function isStopping(): bool
    {
        $app = $this->container;
        return $this->stops || ($app?->bound('queue.worker') && $app->make('queue.worker')->shouldQuit);
    }

    /** Returns whether the worker is about to rest, and so will not pop for now. */
    private function isResting(): bool
    {
        $app = $this->container;
        return (method_exists($app, 'isDownForMaintenance') && $app->isDownForMaintenance())
            || ($app->bound('queue.worker') && $app->make('queue.worker')->paused);
    }

    /** Removes all jobs of a queue. Returns how many. */
    public function clear($queue): int
    {
        return $this->on($queue)->purge();
    }

    // ---- what it is made of -----------------------------------------------------------------------------------------

    /** Returns the queue of a name, for commands that Laravel does not know: pause, groups, schedules. */
    public function on(?string $queue): \Dq\Queue
    {
        // The caller must see a finished job as finished.
        $this->acks->flush();
        return $this->open($queue);
    }

    private function open(?string $queue): \Dq\Queue
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

    /** Returns the outbox of this connection, or null. */
    public function outbox(): ?Outbox
    {
        return $this->madeOutbox ??= $this->outbox === null ? null : ($this->outbox)($this);
    }

    /** @return \Illuminate\Contracts\Redis\Factory */
    public function getRedis()
    {
        return $this->redis;
    }

    public function client(): RedisClient
    {
        return new RedisClient($this->getConnection());
    }

    /** Makes a connection that nothing else uses. */
    private function fresh(): RedisClient
    {
        return new RedisClient($this->redis->resolve($this->connection));
    }
}
