<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Dq\Effects;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** A delivery: by it the envelope is acked, rejected and kept alive. */
final class DqReceivedStamp implements NonSendableStampInterface
{
    /**
     * @param string $queue the key of the queue
     * @param ?int $receipt null if the message was only looked at (`all`, `find`). It grows with every delivery of the
     *     queue, so it serves as a fencing token
     * @param int $attempt the deliveries so far
     * @param Effects $effects changes of Redis keys that go with its ack
     */
    public function __construct(
        public readonly string $queue,
        public readonly string $id,
        public readonly ?int $receipt,
        public readonly int $attempt,
        public readonly Effects $effects = new Effects(),
    ) {
    }
}
