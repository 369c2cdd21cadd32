<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Effects;
use Dq\Message;
use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\CallQueuedHandler;
use Illuminate\Queue\Jobs\Job;

/** A job that a worker has. */
class DqJob extends Job implements JobContract
{
    /** @var array<string, mixed> */
    protected array $decoded;

    /** @param ?string $givenUp why the job is not run any more */
    public function __construct(
        Container $container,
        protected DqQueue $dq,
        protected Message $message,
        ?string $connectionName,
        string $queue,
        protected ?string $givenUp = null,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $queue;
        $this->decoded = $this->payload() ?? [];
    }

    /** Runs the job, or fails it if it kills its workers. */
    public function fire(): void
    {
        if ($this->givenUp === null) {
            parent::fire();
        } else {
            $this->fail(new LostWorkersException("{$this->resolveName()}: $this->givenUp"));
        }
    }

    public function getRawBody(): string
    {
        return $this->message->payload;
    }

    /**
     * Changes of Redis keys that are done together with the end of the job, all or none: nothing if it fails, is released,
     * or has lost its lease. If the server refuses them, the job has failed.
     */
    public function effects(): Effects
    {
        return $this->message->effects();
    }

    /** Finishes the job. If its lease is over, another worker has it, and nothing happens. */
    public function delete(): void
    {
        $effects = $this->hasFailed() ? null : $this->message->collected();
        if ($effects !== null) {
            // The job is not deleted if the server refuses its effects.
            $this->dq->apply($this->message, $effects);
            parent::delete();
            return;
        }
        parent::delete();
        // A handler may delete its job and then continue for any time. Laravel does so when the handler has returned.
        $caller = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 2)[1]['class'] ?? null;
        $this->dq->finish($this->message, $caller === CallQueuedHandler::class);
    }

    /**
     * Gives the job back for another attempt.
     *
     * @param \DateTimeInterface|\DateInterval|int $delay
     */
    public function release($delay = 0): void
    {
        parent::release($delay);
        $this->dq->release($this->message, max(0, $this->secondsUntil($delay)) * 1000);
    }

    /** Counts from 1. A job that came from another driver brings the attempts that it had there. */
    public function attempts(): int
    {
        return ($this->decoded['attempts'] ?? 0) + $this->message->attempt;
    }

    public function getJobId(): string
    {
        return $this->decoded['id'] ?? $this->message->id;
    }

    /** Makes the lease end this many seconds from now. Returns false if it was over. */
    public function touch(int $seconds): bool
    {
        return $this->dq->extend($this->message, $seconds * 1000);
    }

    /** The delivery: its id and receipt (a fencing token). */
    public function message(): Message
    {
        return $this->message;
    }
}
