<?php

declare(strict_types=1);

namespace Dq;

/** A message that follows from another one, in `Queue::ackSend` and `Follow`. */
final class Next
{
    /**
     * @param array<string, mixed> $options those of `Queue::send`
     * @param ?string $to the key of another queue; null: the message goes to the same queue
     */
    public function __construct(
        public readonly string $payload,
        public readonly array $options = [],
        public readonly ?string $to = null,
    ) {
    }

    /** @return list<string|int> */
    public function words(string $key): array
    {
        return ['NEXT', $this->to ?? $key, $this->payload, ...Words::of($this->options)];
    }
}
