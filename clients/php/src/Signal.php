<?php

declare(strict_types=1);

namespace Dq;

/** A signal to the message of an id, in `Queue::ackSend` and `Follow`. */
final class Signal
{
    /** @param ?string $to the key of its queue; null: the message is in the same queue */
    public function __construct(
        public readonly string $id,
        public readonly string $data = '',
        public readonly ?string $to = null,
    ) {
    }

    /** @return list<string> */
    public function words(string $key): array
    {
        return ['SIGNAL', $this->to ?? $key, $this->id, $this->data];
    }
}
