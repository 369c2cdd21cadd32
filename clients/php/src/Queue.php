<?php

declare(strict_types=1);

namespace Dq;

/**
 * A queue on the server, with a method for each command.
 *
 * Making a Queue does not touch the server. Every method is one command and one round trip (`list`, `groups`, `find`:
 * one a page). Times are milliseconds or a DateInterval, points in time are Unix ms or a DateTimeInterface. `Words` says
 * how options are given. Every method may throw a ServerError or a ConnectionError.
 */
final class Queue
{
    use Inspection;
    use Schedules;

    private ?Durable $durable;

    /**
     * @param int $patience for how long (ms) `send` repeats itself while the connection is down
     * @param bool|Durable $durable whether sends and acks are confirmed before a method returns
     * @param list<Middleware> $middleware what runs around `send` and around the handlers of workers
     */
    public function __construct(
        public readonly Client $client,
        public readonly string $key,
        private int $patience = 10_000,
        bool|Durable $durable = false,
        public readonly array $middleware = [],
    ) {
        $this->durable = $durable === true ? new Durable() : ($durable ?: null);
    }

    /** Returns a queue of the server of a URL: redis://user:password@host:6379/0. */
    public static function connect(string $url, string $key): self
    {
        return new self(new UrlClient($url), $key);
    }

    // ---- creating ---------------------------------------------------------------------------------------------------

    /** DQ.CREATE: creates the queue with these options. Fails if it exists. Sending creates one with defaults. */
    public function create(array $options = []): void
    {
        $this->do('CREATE', ...Words::of($options));
    }

    /** DQ.ALTER: changes options of the queue, also for the messages in it. */
    public function alter(array $options): void
    {
        $this->do('ALTER', ...Words::of($options));
    }

    /** Creates the queue, or gives it these options if it exists. To be called when a program starts. */
    public function ensure(array $options = []): void
    {
        if ($this->do('CREATE', 'NX', ...Words::of($options)) === null && $options !== []) {
            $this->alter($options);
        }
    }

    // ---- producing --------------------------------------------------------------------------------------------------

    /**
     * DQ.SEND: adds a message and returns its id, or null if the id was taken and nothing was added.
     *
     * Options: id, replace, rerun, delay or at, group, score, priority, lease, retries, backoff, ttl, type, headers, batch,
     * after, children, parent (key and id), on_dead, park, limits, cost, ...
     *
     * While the connection is down it repeats itself, for `patience` ms, then throws. A message is not added twice by
     * that: it always has an id, a new UUID if none is given. For an id of yours, null may also mean that an earlier
     * try got through. Set DEDUP on the queue to a minute or so: without it an id is free again as soon as its message
     * is finished, and a try repeated later than that would add it anew.
     */
    public function send(string $payload, array $options = []): ?string
    {
        $made = self::uuid();
        $sending = new Sending($this->key, (string) ($options['id'] ?? $made), $payload, $options['headers'] ?? [], $options);
        $reply = $sending->through($this->middleware, $this->sendOne(...));
        // An id that was made just now can only be taken by an earlier try. With IFGROUP, null may also mean that the group
        // had no message.
        $names = array_map(static fn (string $name): string => strtolower(str_replace('_', '', $name)), array_keys($options));
        return $reply === null && array_intersect($names, ['id', 'ifgroup']) === [] ? $made : $reply;
    }

    private function sendOne(Sending $sending): ?string
    {
        $options = array_filter(['id' => $sending->id, 'headers' => $sending->headers]) + $sending->options;
        $words = ['DQ.SEND', $this->key, $sending->payload, ...Words::of($options)];
        return $this->durable === null
            ? Retrying::call($this->client, $this->key, $words, $this->patience)
            : $this->durable->send($this->client, $this->key, $words, $sending->id, $this->patience);
    }

    /** DQ.SEND ... DELAY: adds a message that is due this long (ms) from now. */
    public function later(int|\DateInterval $delay, string $payload, array $options = []): ?string
    {
        return $this->send($payload, ['delay' => $delay] + $options);
    }

    /**
     * DQ.MSEND: adds all of the messages or none. Returns their ids, which the server makes.
     *
     * It is not repeated by itself, because a repetition would add the messages again.
     *
     * @param list<string> $payloads
     * @return list<string>
     */
    public function sendMany(array $payloads, array $options = []): array
    {
        return $payloads === [] ? [] : $this->change('MSEND', count($payloads), ...array_values($payloads), ...Words::of($options));
    }

    /**
     * DQ.GROUPPUSH: adds a JSON object, and reads its group, id, score and due time from it.
     *
     * Options: id_path, score_path, at_path and those of `send`. Returns [group, id], or null if the id was taken.
     *
     * @param list<string> $groupBy
     * @return ?array{string, string}
     */
    public function groupPush(string $json, array $groupBy, array $options = []): ?array
    {
        // phpredis gives a null array as an empty one.
        return $this->change('GROUPPUSH', $json, 'GROUPBY', count($groupBy), ...$groupBy, ...Words::of($options)) ?: null;
    }

    // ---- consuming --------------------------------------------------------------------------------------------------

    /**
     * DQ.FETCH ... WITHMETA: acks the given messages, then takes up to `count` others. May return none.
     *
     * Options: count, block, lease, ack, consumer, group, per_group, max_bytes, bind, no_ack, ... `block` (ms) must be
     * shorter than the client's read timeout: a reply that nobody reads is a delivery lost until its lease is over. `apply` are
     * Effects of the one message of `ack`; after an error of them nothing is fetched.
     *
     * @return list<Message>
     */
    public function fetch(array $options = []): array
    {
        $waits = $this->checkedBlock($options['block'] ?? null);
        $effects = Effects::in($options);
        $words = [...Words::of($options + ['with_meta' => true]), ...($effects?->words($this->client) ?? [])];
        $reply = $this->client->call($this->key, ['DQ.FETCH', $this->key, ...$words], $waits);
        return Message::all($this->key, $effects === null ? $reply : $effects->rest($reply), true);
    }

    /**
     * DQ.MFETCH ... WITHMETA: takes messages of the first of several queues that can give: this one, then the others.
     * `$message->queue` says which it was. Options: those of `fetch` but ack and group. In a cluster the queues must be in
     * one slot.
     *
     * @param list<self> $others
     * @return list<Message>
     */
    public function fetchFirst(array $others, array $options = []): array
    {
        $waits = $this->checkedBlock($options['block'] ?? null);
        $keys = [$this->key, ...array_map(static fn (self $other): string => $other->key, $others)];
        $words = ['DQ.MFETCH', count($keys), ...$keys, ...Words::of($options + ['with_meta' => true])];
        $reply = $this->client->call($this->key, $words, $waits);
        return $reply ? Message::all(...Reply::pair($reply), hasMeta: true) : [];
    }

    /**
     * DQ.ACK: finishes messages. Returns how many were finished. The others had lost their lease.
     *
     * Options: result (a text that is kept with the record), cost (what each has really taken of its limits), apply (Effects,
     * with one message: changes of other Redis keys in the same step).
     *
     * @param Message|int|list<Message|int> $receipts
     */
    public function ack(Message|int|array $receipts, array $options = []): int
    {
        $effects = Effects::in($options);
        if ($effects === null) {
            return $this->settle('ACK', $receipts, $options);
        }
        $words = [...self::receipts($receipts), ...Words::of($options), ...$effects->words($this->client)];
        return (int) $effects->keep($this->changeReceipts(boolval(...), 'ACK', ...$words));
    }

    /**
     * DQ.ACKSEND: finishes a message and sends the messages and signals that follow from it, in one step: all of it or
     * nothing. Returns the ids, null for one that was taken, and what `signal` returns for each signal; or null, and nothing
     * was done, if the lease was lost.
     *
     *     $queue->ackSend($message, [new Next('order 7', ['id' => 'o7'], to: 'parcels'), new Signal('boss', 'paid')]);
     *
     * Options: result, apply (as in `ack`).
     *
     * @param list<Next|Signal> $following
     * @return ?list<string|bool|null>
     */
    public function ackSend(Message|int $receipt, array $following, array $options = []): ?array
    {
        $effects = Effects::in($options);
        $words = [...Words::of($options), ...($effects?->words($this->client) ?? []), ...Follow::words($following, $this->key)];
        $reply = $this->changeReceipts(boolval(...), 'ACKSEND', Words::word($receipt), ...$words);
        $ids = $effects === null ? $reply : $effects->rest($reply);
        return array_map(static fn (string|int|null $one): string|bool|null => is_int($one) ? $one === 1 : $one, $ids ?? []) ?: null;
    }

    /**
     * DQ.NACK: fails messages. Returns how many failed. The others had lost their lease.
     *
     * Options: delay, error, silent (given back, as if it had not been delivered), park (with silent: held until a signal
     * comes; the longest time in ms, or true for ever), fatal (dead at once), note, pause, ...
     *
     * @param Message|int|list<Message|int> $receipts
     */
    public function nack(Message|int|array $receipts, array $options = []): int
    {
        return $this->settle('NACK', $receipts, $options);
    }

    /**
     * DQ.TOUCH: makes leases end this long (at least 1 ms) from now. Returns how many do. The others were over.
     *
     * Options: note (stays with the messages for their next attempt; an empty one removes it).
     *
     * @param Message|int|list<Message|int> $receipts
     */
    public function touch(int|\DateInterval $lease, Message|int|array $receipts, array $options = []): int
    {
        $words = self::receipts($receipts);
        return $words === [] ? 0 : $this->do('TOUCH', Words::word($lease), ...$words, ...Words::of($options));
    }

    // ---- changing ---------------------------------------------------------------------------------------------------

    /**
     * DQ.CANCEL: cancels messages. Returns the state that each of them had, or null for an unknown one.
     *
     * @return list<?string>
     */
    public function cancel(string ...$ids): array
    {
        return $this->do('CANCEL', ...$ids);
    }

    /** DQ.RESCHEDULE: changes the due time (delay or at). Returns false if the message was not pending. */
    public function reschedule(string $id, array $due): bool
    {
        return $this->do('RESCHEDULE', $id, ...Words::of($due)) === 1;
    }

    /** DQ.UPDATE: replaces the payload. Returns false if the message was not pending. */
    public function update(string $id, string $payload): bool
    {
        return $this->do('UPDATE', $id, $payload) === 1;
    }

    /** DQ.SIGNAL: gives a message this text, and ends its wait for it. Returns false if it is unknown or has ended. */
    public function signal(string $id, ?string $data = null): bool
    {
        return $this->do('SIGNAL', $id, ...Words::of(['data' => $data])) === 1;
    }

    /** DQ.REDRIVE: makes dead messages pending again. Options: ids (a list), or count, or none for all. Returns how many. */
    public function redrive(array $options = []): int
    {
        return $this->do('REDRIVE', ...(isset($options['ids']) ? [] : ['ALL']), ...Words::of($options));
    }

    /** DQ.PURGE: removes messages for good. Options: state, group. Returns how many. */
    public function purge(array $options = []): int
    {
        return $this->do('PURGE', ...Words::of($options));
    }

    /** DQ.PAUSE: stops deliveries of the queue or of a group. Options: group, for (how long; else until `resume`). */
    public function pause(array $options = []): void
    {
        $this->do('PAUSE', ...Words::of($options));
    }

    /** DQ.RESUME: ends a pause, or the hold of a group. Options: group. */
    public function resume(array $options = []): void
    {
        $this->do('RESUME', ...Words::of($options));
    }

    /** DQ.GROUPSET: changes settings of a group: weight, concurrency, rate. */
    public function setGroup(string $group, array $options): void
    {
        $this->do('GROUPSET', $group, ...Words::of($options));
    }

    /**
     * DQ.LIMIT: limits the messages that name it in `limits`. Options: concurrency, rates, weight. Without one the limit is
     * removed. A name with `*` is a pattern, and each name that it matches is limited by itself.
     */
    public function limit(string $name, array $options = []): void
    {
        $this->do('LIMIT', $name, ...Words::of($options));
    }

    /**
     * DQ.TICK: processes all due events, or moves a manual clock. Options: advance, to. Returns how much of each kind.
     *
     * @return array<string, int>
     */
    public function tick(array $options = []): array
    {
        return Reply::map($this->do('TICK', ...Words::of($options)));
    }

    /** Any other command of this queue: `$queue->do('LEN', 'dead')` is DQ.LEN key dead. */
    public function do(string $verb, string|int ...$words): mixed
    {
        return $this->client->call($this->key, ["DQ.$verb", $this->key, ...$words]);
    }

    /** @param Message|int|list<Message|int> $receipts */
    private function settle(string $verb, Message|int|array $receipts, array $options): int
    {
        $words = self::receipts($receipts);
        if ($words === []) {
            return 0;
        }
        $isDone = static fn (mixed $reply): bool => $reply === count($words);
        return $this->changeReceipts($isDone, $verb, ...$words, ...Words::of($options));
    }

    /**
     * @param Message|int|list<Message|int> $given
     * @return list<string|int>
     */
    private static function receipts(Message|int|array $given): array
    {
        return array_map(Words::word(...), is_array($given) ? array_values($given) : [$given]);
    }

    /** Runs a command that changes the queue, and has it confirmed if the queue is durable. */
    private function change(string $verb, string|int ...$words): mixed
    {
        return $this->durable === null
            ? $this->do($verb, ...$words)
            : $this->durable->call($this->client, $this->key, ["DQ.$verb", $this->key, ...$words]);
    }

    /** @param \Closure(mixed): bool $isDone whether a reply means that all was done */
    private function changeReceipts(\Closure $isDone, string $verb, string|int ...$words): mixed
    {
        return $this->durable === null
            ? $this->do($verb, ...$words)
            : $this->durable->settle($this->client, $this->key, ["DQ.$verb", $this->key, ...$words], $this->patience, $isDone);
    }

    /**
     * @param list<string> $command
     * @param \Closure(array): array<string, mixed> $read
     * @return \Generator<array<string, mixed>>
     */
    private function pages(array $command, array $options, \Closure $read): \Generator
    {
        $cursor = '0';
        do {
            [$cursor, $page] = $this->do(...$command, ...Words::of(['cursor' => $cursor] + $options + ['count' => 100]));
            foreach ($page as $element) {
                yield $read($element);
            }
        } while ($cursor !== '0');
    }

    /** Returns whether the command waits. Refuses a wait that is longer than the client's. */
    private function checkedBlock(int|\DateInterval|null $block): bool
    {
        if ($block === null) {
            return false;
        }
        $milliseconds = Words::word($block);
        $limit = $this->client->readTimeout();
        if ($limit > 0.0 && ($milliseconds === 0 || $milliseconds >= $limit * 1000)) {
            throw new \InvalidArgumentException("a wait of $milliseconds ms does not fit into the read timeout of $limit s");
        }
        return true;
    }

    /** Returns a new UUIDv7: Unix ms, then 74 random bits. */
    public static function uuid(): string
    {
        $hex = sprintf('%012x', (int) (microtime(true) * 1000)) . bin2hex(random_bytes(10));
        $hex[12] = '7';
        $hex[16] = dechex(8 | (hexdec($hex[16]) & 3));
        return implode('-', sscanf($hex, '%8s%4s%4s%4s%12s'));
    }
}
