<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Error;
use Dq\Message;

/**
 * The ack of a finished job until it is sent.
 *
 * An ack goes with the next fetch. It waits only if that fetch is sure to follow at once: between the end of a job and
 * the next pop of the same worker. If it is known that no pop follows, the ack is sent at once: by a worker that stops,
 * is paused or rests, and before any other request to the queue. A job whose worker is killed in this time runs again,
 * as it does if the worker is killed just before its ack. docs/clients.md explains it.
 *
 * The driver is not told whether a worker rests between its jobs (`--rest`). That is seen by the time that it takes
 * from a job to the next round, and from then on no ack waits.
 */
final class AckBuffer
{
    /** Seconds from a job to the next round above which a worker rests. The shortest `--rest` is one second. */
    private const REST = 0.5;

    private ?Message $finished = null;
    private float $since = 0.0;
    /** Whether a worker asks in rounds. Then it reports when a round begins and when it stops. */
    private bool $hasRounds = false;
    private bool $rests = false;
    /** Whether the ack was there when a round began: an ack that is not sent in that round is sent at the next one. */
    private bool $isOld = false;

    /**
     * @param \Closure(Message): void $ack sends DQ.ACK
     * @param \Closure(Message): void $acked is told that the server knows
     */
    public function __construct(private \Closure $ack, private \Closure $acked)
    {
    }

    /** Takes the ack of a job. It waits only if that is the last thing that the worker does for the job. */
    public function add(Message $message, bool $mayWait): void
    {
        $this->flush();
        $this->finished = $message;
        $this->since = microtime(true);
        if (!$mayWait || !$this->hasRounds || $this->rests) {
            $this->flush();
        }
    }

    /** Notes that a worker begins a round, in which it pops unless its queue is paused. */
    public function roundBegins(): void
    {
        $this->hasRounds = true;
        $this->rests = $this->rests || ($this->finished !== null && microtime(true) - $this->since > self::REST);
        if ($this->isOld) {
            $this->flush();
        }
        $this->isOld = $this->finished !== null;
    }

    /** Returns the message that a fetch from this key can ack. Others are acked by themselves. */
    public function forFetchFrom(string $key): ?Message
    {
        return $this->finished?->queue === $key ? $this->finished : null;
    }

    /** Notes that the server knows of the ack. */
    public function done(): void
    {
        if ($this->finished !== null) {
            ($this->acked)($this->finished);
        }
        $this->finished = null;
        $this->isOld = false;
    }

    /** Sends the ack that waits, if there is one. */
    public function flush(): void
    {
        if ($this->finished === null) {
            return;
        }
        try {
            ($this->ack)($this->finished);
        } catch (Error $error) {
            // After a lost reply the ack is sent again, which does no harm. A command that is refused for good must not
            // stop the worker.
            if (!$error->isTransient()) {
                $this->done();
            }
            throw $error;
        }
        $this->done();
    }
}
