<?php

declare(strict_types=1);

namespace Dq;

/**
 * Handles the messages of a queue, one after the other. For more at a time start more processes.
 *
 * Each round trip fetches the next messages and acks the ones before. A handler that returns is done, and a text that it
 * returns is kept as the result of the message. A handler that throws has failed: the server counts the failure and
 * decides by RETRIES and BACKOFF what comes next (see `Retry` and `Reject`). A message may be delivered twice, if the
 * worker dies after its work and before its ack: make handlers idempotent.
 *
 * On SIGTERM, SIGINT and `stop` the worker finishes the message that it is handling, gives the others back as if they had
 * not been delivered, and returns from `run`. Lost connections are made anew, for as long as it takes.
 */
final class Worker
{
    private const ERROR_LENGTH = 1000;

    private \Closure $handler;
    private int $block;
    private ?Heartbeat $heartbeat;
    private bool $stopping = false;

    /**
     * @param callable(Message): ?string $handler
     * @param int $count how many messages one fetch takes
     * @param int $lease ms after a crash of this process until others get its messages. With a heartbeat it is not the
     *     time that a handler may take
     * @param int $block ms that one fetch waits at the server. It is kept below the client's read timeout, and a stop may
     *     take that long
     * @param ?string $consumer the name that DQ.CONSUMERS shows; null: host and process id
     * @param bool|\Closure(): Client $heartbeat false: none; a function: it makes the connection of the heartbeat. True
     *     needs a client that was made from a URL. Without pcntl there is none
     * @param ?int $timeLimit ms after which the lease of a message is no longer extended
     * @param ?int $maxMessages returns after so many messages
     */
    public function __construct(
        private Queue $queue,
        callable $handler,
        private int $count = 1,
        private int $lease = 30_000,
        int $block = 2_000,
        private ?string $consumer = null,
        bool|\Closure $heartbeat = true,
        ?int $timeLimit = null,
        private ?int $maxMessages = null,
    ) {
        $this->handler = $handler(...);
        $limit = $queue->client->readTimeout();
        $this->block = $limit > 0.0 ? max(1, min($block, (int) ($limit * 500))) : $block;
        $this->consumer ??= gethostname() . ':' . getmypid();
        if ($heartbeat === true && $queue->client instanceof UrlClient) {
            $heartbeat = $queue->client->fresh(...);
        }
        $possible = $heartbeat instanceof \Closure && Heartbeat::isPossible();
        $this->heartbeat = $possible ? new Heartbeat($heartbeat, $lease, $timeLimit) : null;
    }

    /** Works until it is stopped. Throws errors that will not pass (no right, a key of another type). */
    public function run(): void
    {
        $restore = $this->listen();
        $done = [];
        try {
            while (($batch = $this->fetch($done)) !== null) {
                // Until now, because the others of their batch may have taken long.
                $this->drop($done);
                $done = $this->handle($batch);
            }
        } finally {
            $this->heartbeat?->stop();
            $this->settle('ACK', $done);
            $restore();
        }
    }

    /** Makes `run` stop gracefully and return. It may be called by the handler or by a signal handler. */
    public function stop(): void
    {
        $this->stopping = true;
    }

    /**
     * @param list<Message> $done those to be acked
     * @return ?list<Message> null if the worker was stopped before: nothing was acked
     */
    private function fetch(array $done): ?array
    {
        $token = bin2hex(random_bytes(8));
        for ($tries = 0; !$this->stopping; $tries++) {
            try {
                // An ack that is repeated after a lost reply is stale the second time, and changes nothing. The token
                // makes the server give the messages of the lost reply once more.
                return $this->queue->fetch([
                    'count' => $this->count,
                    'block' => $this->block,
                    'lease' => $this->lease,
                    'consumer' => $this->consumer,
                    'token' => $token,
                    'ack' => $done,
                ]);
            } catch (Error $error) {
                if (!$error->isTransient()) {
                    throw $error;
                }
                usleep((int) (Retrying::pause($tries) * 1e6));
            }
        }
        return null;
    }

    /**
     * @param list<Message> $batch
     * @return list<Message> those to be acked
     */
    private function handle(array $batch): array
    {
        $done = [];
        if ($batch !== []) {
            $this->heartbeat?->keep(...$batch);
        }
        while ($batch !== [] && !$this->stopping) {
            $message = array_shift($batch);
            if ($this->handleOne($message)) {
                $done[] = $message;
            } else {
                $this->drop([$message]);
            }
            if ($this->maxMessages !== null && --$this->maxMessages <= 0) {
                $this->stop();
            }
        }
        $this->settle('NACK', $batch, ['silent' => true]);
        $this->drop($batch);
        return $done;
    }

    /** @param list<Message> $messages whose leases are no longer extended */
    private function drop(array $messages): void
    {
        foreach ($messages as $message) {
            $this->heartbeat?->drop($message);
        }
    }

    /** Returns whether the message is to be acked. */
    private function handleOne(Message $message): bool
    {
        try {
            $result = ($this->handler)($message);
        } catch (\Throwable $error) {
            $text = $error instanceof Reject || $error instanceof Retry
                ? $error->getMessage()
                : $error::class . ': ' . $error->getMessage();
            $this->settle('NACK', [$message], [
                'error' => substr($text, 0, self::ERROR_LENGTH) ?: null,
                'delay' => $error instanceof Retry ? $error->delay : null,
                'fatal' => $error instanceof Reject,
            ]);
            return false;
        }
        if ($result === null) {
            return true;
        }
        $this->settle('ACK', [$message], ['result' => $result]);
        return false;
    }

    /**
     * Runs DQ.ACK or DQ.NACK, and repeats it if need be until the lease is over.
     *
     * @param list<Message> $messages
     */
    private function settle(string $verb, array $messages, array $options = []): void
    {
        if ($messages === []) {
            return;
        }
        $receipts = array_map(static fn (Message $message): int => $message->receipt, $messages);
        $words = ["DQ.$verb", $this->queue->key, ...$receipts, ...Words::of($options)];
        try {
            Retrying::call($this->queue->client, $this->queue->key, $words, $this->stopping ? 2_000 : $this->lease);
        } catch (Error $error) {
            if (!$error->isTransient()) {
                throw $error;
            }
            // The lease runs out, and the message is delivered again.
        }
    }

    /** Stops on SIGTERM and SIGINT. Returns what restores the handlers that were there before. */
    private function listen(): \Closure
    {
        if (!function_exists('pcntl_signal')) {
            return static fn () => null;
        }
        $async = pcntl_async_signals(true);
        $before = [];
        foreach ([SIGTERM, SIGINT] as $signal) {
            $before[$signal] = pcntl_signal_get_handler($signal);
            // Restarting system calls: a signal must not break the wait for a reply that may bring messages.
            pcntl_signal($signal, fn () => $this->stop(), true);
        }
        return static function () use ($before, $async): void {
            foreach ($before as $signal => $handler) {
                pcntl_signal($signal, $handler);
            }
            pcntl_async_signals($async);
        };
    }
}
