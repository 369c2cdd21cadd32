<?php

declare(strict_types=1);

namespace Dq;

/** A message that is about to be sent. A middleware may change its payload, its headers and its options. */
final class Sending
{
    /**
     * @param string $queue the key of the queue
     * @param array<string, string|int> $headers
     * @param array<string, mixed> $options the other options of `Queue::send`
     */
    public function __construct(
        public readonly string $queue,
        public readonly string $id,
        public string $payload,
        public array $headers,
        public array $options,
    ) {
    }

    /**
     * Sends it through middleware.
     *
     * @param list<Middleware> $middleware
     * @param \Closure(self): ?string $send
     */
    public function through(array $middleware, \Closure $send): ?string
    {
        $first = array_shift($middleware);
        return $first === null ? $send($this) : $first->send($this, fn (): ?string => $this->through($middleware, $send));
    }
}
