<?php

declare(strict_types=1);

namespace Dq\Think;

use Dq\Held;
use Dq\Message;
use Dq\Queue;
use think\App;
use think\queue\Job;

/** A job that a worker has. */
class DqJob extends Job
{
    public function __construct(
        App $app,
        protected Queue $dq,
        protected Message $message,
        $connection,
        $queue,
        protected ?Held $held = null,
    ) {
        $this->app = $app;
        $this->connection = $connection;
        $this->queue = $queue;
    }

    public function getRawBody()
    {
        return $this->message->payload;
    }

    /** Counts from 1. */
    public function attempts()
    {
        return (int) $this->payload('attempts', 0) + $this->message->attempt;
    }

    public function getJobId()
    {
        return $this->payload('id', $this->message->id);
    }

    /** Finishes the job. If its lease is over, another worker has it, and nothing happens. */
    public function delete()
    {
        parent::delete();
        $this->held?->remove($this->message->queue, $this->message->receipt);
        $this->dq->ack($this->message);
    }

    /** Gives the job back for another attempt, in this many seconds. */
    public function release($delay = 0)
    {
        parent::release($delay);
        $this->held?->remove($this->message->queue, $this->message->receipt);
        // Not SILENT: that would not count the attempt, and think-queue gives a job up by its attempts.
        $this->dq->nack($this->message, ['delay' => max(0, (int) ($delay * 1000))]);
    }
}
