<?php

declare(strict_types=1);

namespace Dq;

/**
 * Handles the messages of a queue, one after the other. For more at a time start more processes.
 *
 * Each round trip fetches the next messages and acks the ones before. A handler that returns is done, and what it returns
 * is kept as the result of the message: a text as it is, anything else as JSON. A handler that throws has failed: the
 * server counts the failure and decides by RETRIES and BACKOFF what comes next (see `Retry`, `Reject`, `Snooze` and `Park`).
 * So has one that ends its process, by `exit` or a fatal error. With `Follow` it also sends messages. A message may be
 * delivered twice, if the worker dies after its work and before its ack: make handlers idempotent.
 *
 * On SIGTERM, SIGINT and `stop` the worker finishes the message that it is handling, for which that has `grace` ms, gives the
 * others back as if they had not been delivered, and returns from `run`. Lost connections are made anew, for as long as it takes.
 */
final class Worker
{
    /**
     * A worker that stops waits for a reply for this many ms, and repeats a command for as long if the server does not
     * answer.
     */
    private const LAST_WORDS = 1_000;
    /** Seconds for which a reply may come later than the end of its wait. A reply that is lost so is given once more. */
    private const SLACK = 1.5;
    /** Seconds for which it waits for the reply to an ack. It is repeated without harm. */
    private const REPLY = 2.0;

    private static int $made = 0;

    private \Closure $handler;
    /** Whether a handler runs, which GraceOver may end. */
    private bool $isHandling = false;
    private int $block;
    private ?Heartbeat $heartbeat;
    private LostWorkers $lostWorkers;
    private bool $stopping = false;
    /** @var list<Message> fetched, and not begun */
    private array $waiting = [];
    private ?Message $running = null;
    /** @var list<Message> to be acked by the next fetch */
    private array $done = [];

    /**
     * @param callable(Message, Context): mixed|array<string, callable(Message, Context): mixed> $handler a function, or one
     *     for each type of message, of which `*` handles all others
     * @param int $count how many messages one fetch takes
     * @param int $lease ms after a crash of this process until others get its messages. With a heartbeat it is not the
     *     time that a handler may take
     * @param int $block ms that one fetch waits at the server. It is kept below the client's read timeout, and a stop may
     *     take that long
     * @param ?string $consumer the name that DQ.CONSUMERS shows; null: host and process id, and
     *     a number from the second worker of a process on
     * @param bool|\Closure(): Client $heartbeat false: none; a function: it makes the connection of the heartbeat. True
     *     needs a client that was made from a URL. Without pcntl there is none
     * @param ?int $timeLimit ms after which the lease of a message is no longer extended
     * @param ?int $maxMessages returns after this number of messages
     * @param int $grace ms for which a handler may go on when the worker stops, in whole seconds. It gets a GraceOver then.
     *     Without pcntl it may go on for as long as it likes
     * @param int $lostWorkers after how many lost workers a message without limit of RETRIES is given up; 0: never
     */
    public function __construct(
        private Queue $queue,
        callable|array $handler,
        private int $count = 1,
        private int $lease = 30_000,
        int $block = 2_000,
        private ?string $consumer = null,
        bool|\Closure $heartbeat = true,
        ?int $timeLimit = null,
        private ?int $maxMessages = null,
        int $lostWorkers = LostWorkers::MOST,
        private int $grace = 20_000,
    ) {
        $this->handler = self::chooser($handler);
        foreach (array_reverse($queue->middleware) as $one) {
            $next = $this->handler;
            $this->handler = static fn (Message $message, Context $context): mixed
                => $one->handle($message, $context, static fn (Message $given): mixed => $next($given, $context));
        }
        $limit = $queue->client->readTimeout();
        $this->block = $limit > 0.0 ? max(1, min($block, (int) ($limit * 500))) : $block;
        $this->lostWorkers = new LostWorkers($lostWorkers);
        $this->consumer ??= gethostname() . ':' . getmypid() . (self::$made++ === 0 ? '' : ':' . self::$made);
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
        $unwatch = ProcessEnd::watch($this->leave(...));
        try {
            while ($this->fetch()) {
                $this->handleAll();
            }
        } finally {
            try {
                $this->heartbeat?->stop();
                $this->settle('ACK', $this->done);
            } finally {
                $this->limit(null);
                $unwatch();
                $restore();
            }
        }
    }

    /** Makes `run` stop gracefully and return. It may be called by the handler or by a signal handler. */
    public function stop(): void
    {
        if (!$this->stopping && $this->isHandling && function_exists('pcntl_alarm')) {
            pcntl_alarm(max(1, (int) ceil($this->grace / 1000)));
        }
        $this->stopping = true;
    }

    /** @return \Closure(Message, Context): mixed */
    private static function chooser(callable|array $handlers): \Closure
    {
        if (is_callable($handlers)) {
            return $handlers(...);
        }
        return static function (Message $message, Context $context) use ($handlers): mixed {
            $handler = $handlers[$message->type() ?? '*'] ?? $handlers['*'] ?? null;
            if ($handler === null) {
                // The message fails, so that somebody sees it, and redrives it when there is a handler.
                throw new \LogicException('no handler for type ' . json_encode($message->type()));
            }
            return $handler($message, $context);
        };
    }

    /** Acks the finished messages, and fetches the next messages. Returns false when the worker is to stop. */
    private function fetch(): bool
    {
        $options = [
            'count' => $this->count,
            'lease' => $this->lease,
            'consumer' => $this->consumer,
            'token' => bin2hex(random_bytes(8)),
        ];
        $asked = microtime(true);
        for ($tries = 0; ; $tries++) {
            // Messages that a lost reply has leased must be given back: a worker that stops asks once more, and does
            // not wait.
            if ($this->stopping && $tries === 0) {
                return false;
            }
            $last = $this->stopping;
            $this->limit($last ? self::LAST_WORDS / 1000 : $this->block / 1000 + self::SLACK);
            // An ack that is repeated after a lost reply is stale the second time, and changes nothing. The token
            // makes the server give the messages of the lost reply once more.
            $options['block'] = $last ? null : $this->block;
            $options['ack'] = $this->done;
            $reply = Retrying::attempt(fn (): array => $this->queue->fetch($options));
            if (!$reply instanceof Error) {
                $this->waiting = $reply;
                break;
            }
            if ($last || !$reply->isTransient()) {
                return $last ? false : throw $reply;
            }
            usleep((int) (Retrying::pause($tries) * 1e6));
        }
        if ($this->waiting !== []) {
            Retrying::renewLate($asked, $this->lease, fn (): int => $this->queue->touch($this->lease, $this->waiting));
        }
        // The leases are renewed until now, because the other messages of their batch may have taken long.
        $this->drop($this->done);
        $this->done = [];
        return true;
    }

    private function handleAll(): void
    {
        if ($this->waiting !== []) {
            $this->heartbeat?->keep(...$this->waiting);
        }
        while ($this->waiting !== [] && !$this->stopping) {
            $this->running = array_shift($this->waiting);
            if ($this->handle($this->running)) {
                $this->done[] = $this->running;
            } else {
                $this->drop([$this->running]);
            }
            $this->running = null;
            if ($this->maxMessages !== null && --$this->maxMessages <= 0) {
                $this->stop();
            }
        }
        $this->settle('NACK', $this->waiting, ['silent' => true]);
        $this->drop($this->waiting);
        $this->waiting = [];
    }

    /** @param list<Message> $messages whose leases are no longer extended */
    private function drop(array $messages): void
    {
        foreach ($messages as $message) {
            $this->heartbeat?->drop($message);
        }
    }

    /** Returns whether the message is to be acked. */
    private function handle(Message $message): bool
    {
        $context = new Context($this->queue, $message, $this->lease);
        try {
            if (($message->meta['retries-left'] ?? null) === -1) {
                $this->refuseKiller($message);
            }
            $returned = $this->callHandler($message, $context);
            $follows = $returned instanceof Follow ? $returned : null;
            $result = Outcome::result($follows === null ? $returned : $follows->result);
            $effects = $message->collected()?->words($this->queue->client) ?? [];
            $following = Follow::words($follows->following ?? [], $this->queue->key);
            if ($effects !== [] || $following !== []) {
                // A message that others follow from has no real cost.
                $cost = $following === [] ? $context->booked() : null;
                $verb = $following === [] ? 'ACK' : 'ACKSEND';
                $this->settle($verb, [$message], ['result' => $result, 'cost' => $cost], [...$effects, ...$following]);
                return false;
            }
        } catch (GraceOver) {
            $this->settle('NACK', [$message], ['silent' => true]);
            return false;
        } catch (\Throwable $thrown) {
            try {
                $this->settle('NACK', [$message], Outcome::of($thrown));
            } catch (ServerError $refusal) {
                // The message fails plainly if the server refuses what is to be done with it.
                $this->settle('NACK', [$message], Outcome::failed($refusal->getMessage()));
            }
            return false;
        }
        if ($result === null && $context->booked() === null) {
            return true;
        }
        try {
            $this->settle('ACK', [$message], ['result' => $result, 'cost' => $context->booked()]);
        } catch (ServerError $refusal) {
            // The work is done, so the message is not tried again.
            $failed = Outcome::failed('the result was refused: ' . $refusal->getMessage());
            $this->settle('NACK', [$message], $failed + ['fatal' => true]);
        }
        return false;
    }

    private function callHandler(Message $message, Context $context): mixed
    {
        $this->isHandling = true;
        try {
            return ($this->handler)($message, $context);
        } finally {
            $this->isHandling = false;
            if ($this->stopping && function_exists('pcntl_alarm')) {
                pcntl_alarm(0);
            }
        }
    }

    private function refuseKiller(Message $message): void
    {
        try {
            $verdict = $this->lostWorkers->verdict($this->queue, $message);
        } catch (Error) {
            return; // It is found out the next time.
        }
        if ($verdict !== null) {
            throw new Reject($verdict);
        }
    }

    /** Settles its messages before the process ends, and before others wait for the leases. */
    private function leave(string $how): void
    {
        $this->stop();
        $this->heartbeat?->stop();
        if ($this->queue->client instanceof UrlClient) {
            // The process may have ended in the middle of a reply.
            $this->queue = new Queue($this->queue->client->fresh(), $this->queue->key);
        }
        $this->settle('NACK', $this->running === null ? [] : [$this->running], Outcome::failed($how));
        $this->settle('NACK', $this->waiting, ['silent' => true]);
        $this->settle('ACK', $this->done);
    }

    /**
     * Runs DQ.ACK, DQ.ACKSEND or DQ.NACK, and repeats it if needed until the lease is over. Then the message is
     * delivered again.
     *
     * @param list<Message> $messages
     * @param list<string|int> $following the words of the effects of a message, and of what follows from it
     */
    private function settle(string $verb, array $messages, array $options = [], array $following = []): void
    {
        if ($messages === []) {
            return;
        }
        $receipts = array_map(static fn (Message $message): int => $message->receipt, $messages);
        $words = ["DQ.$verb", $this->queue->key, ...$receipts, ...Words::of($options), ...$following];
        // The patience is asked for at each try, because the worker may have been stopped meanwhile.
        $patience = fn (): int => $this->stopping ? self::LAST_WORDS : $this->lease;
        $command = function () use ($words): mixed {
            $this->limit($this->stopping ? self::LAST_WORDS / 1000 : self::REPLY);
            return $this->queue->client->call($this->queue->key, $words);
        };
        try {
            Retrying::run($command, $patience);
        } catch (Error $error) {
            if (!$error->isTransient()) {
                throw $error;
            }
        }
    }

    /** Limits the wait for replies, in seconds. The read timeout of a client that was given is its own. */
    private function limit(?float $seconds): void
    {
        if ($this->queue->client instanceof UrlClient) {
            $this->queue->client->limit($seconds);
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
        foreach ([SIGTERM, SIGINT, SIGALRM] as $signal) {
            $before[$signal] = pcntl_signal_get_handler($signal);
        }
        pcntl_signal(SIGALRM, function (): void {
            if ($this->isHandling) {
                pcntl_alarm(1);
                throw new GraceOver('the worker stops, and the time for its handler is over');
            }
        }, false);
        foreach ([SIGTERM, SIGINT] as $signal) {
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
