<?php

declare(strict_types=1);

namespace Dq;

/** A middleware that writes payloads and headers in another form: encrypted, compressed, kept elsewhere. */
abstract class Coding implements Middleware
{
    /**
     * Returns the payload and the headers of a message of this queue and id as they are sent.
     *
     * @param array<string, string|int> $headers
     * @return array{string, array<string, string|int>}
     */
    abstract public function seal(string $queue, string $id, string $payload, array $headers = []): array;

    /**
     * Returns the payload and the headers as they were. Throws Reject for a message that can never be read.
     *
     * @param array<string, string> $headers
     * @return array{string, array<string, string>}
     */
    abstract public function open(string $queue, string $id, string $payload, array $headers): array;

    public function send(Sending $sending, \Closure $next): ?string
    {
        [$sending->payload, $sending->headers] = $this->seal($sending->queue, $sending->id, $sending->payload, $sending->headers);
        return $next();
    }

    public function handle(Message $message, Context $context, \Closure $next): mixed
    {
        return $next($this->opened($message));
    }

    /** Returns a message with its payload and headers as they were. Its effects are those of the given one. */
    public function opened(Message $message): Message
    {
        return $message->with(...$this->open($message->queue, $message->id, $message->payload, $message->headers()));
    }
}
