<?php

declare(strict_types=1);

namespace Dq;

/**
 * A queue with `durable` has run a command, and it is not confirmed that this lasts: the queue is as `reply` says on the
 * server that has replied, and may lose that again.
 */
final class NotConfirmed extends Error
{
    /** The id of the message, of `send`. It may be sent again with this id. */
    public ?string $id = null;

    /**
     * @param mixed $reply what the server has replied to the command
     * @param bool $synced whether the log of the server was synced
     * @param int $replicas how many replicas have confirmed
     * @param ?ServerError $refusal what the server has replied in place of a confirmation, if it was not only late
     */
    public function __construct(
        string $why,
        public mixed $reply,
        public readonly bool $synced = false,
        public readonly int $replicas = 0,
        ?ServerError $refusal = null,
    ) {
        parent::__construct("the command was run, but it is not confirmed that this lasts: $why", 0, $refusal);
    }

    /** Returns whether sending again, with the same id, can help. */
    public function isTransient(): bool
    {
        return $this->getPrevious() === null;
    }
}
