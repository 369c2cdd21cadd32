<?php

declare(strict_types=1);

namespace Dq\Outbox;

use Dq\Client;
use Dq\Durable;
use Dq\Queue;
use Dq\ServerError;
use Dq\Words;

use function array_slice;
use function count;

/**
 * Messages that are written to a table in the caller's transaction, and sent to the server after its commit.
 *
 * A row has the words of its DQ.SEND, with an ID, so to send it again adds nothing (DEDUP). No lock is needed for that, and
 * none for the order of a group: everybody who sends a row of a group has sent the older rows of the group before. So the
 * first send of each message comes after the first send of those before it, however many send them.
 */
final class Outbox
{
    /** The number of rows that are read at once. */
    public const BATCH = 100;
    /** The number of lines that the server may refuse until a pass over the table ends. */
    private const BLOCKED = 1000;
    /** Microseconds between two looks at the table. */
    private const POLL = 500_000;

    /** @var list<string> the lines of what was written and is not committed yet, for as many as are sent at once */
    private array $lines = [];
    /** @var array<string, true> */
    private array $begun = [];
    /** @var array<string, true> */
    private array $refused = [];
    private ?Durable $durable;

    /**
     * @param \Closure(): Client $client makes the client, or returns one that is there
     * @param array<string, mixed> $options those of queues that are not there yet
     * @param int $dedup how long (ms) the server knows an id after its message has ended, longer than a program that sends
     *     rows may be stopped
     * @param bool|Durable $durable whether a row is deleted only when its message is confirmed
     * @param ?\Closure(string): void $log where errors go; null: error_log
     */
    public function __construct(
        private \Closure $client,
        private Rows $rows,
        private array $options = [],
        private int $dedup = 3_600_000,
        bool|Durable $durable = false,
        private ?\Closure $log = null,
    ) {
        $this->durable = $durable === true ? new Durable() : ($durable ?: null);
    }

    /**
     * Writes a message in the transaction of the caller, and has it sent when that is committed. Returns its id.
     *
     * @param array<string, mixed> $options options of DQ.SEND. A delay counts from now
     */
    public function send(string $queue, string $payload, array $options = []): string
    {
        $row = Row::of($queue, $payload, $options);
        $this->rows->insert($row);
        $this->lines = array_slice([...$this->lines, $row->line], -self::BLOCKED);
        // The first of these calls sends all. Those of a savepoint that was rolled back are not made, so each message has one.
        $this->rows->afterCommit($this->committed(...));
        return $row->messageId;
    }

    /** Sends what was committed. It never throws: what cannot be sent now is left to a relay. */
    private function committed(): void
    {
        // After a rollback there are lines without rows, too.
        $lines = array_values(array_unique($this->lines));
        $this->lines = [];
        try {
            foreach (array_chunk($lines, self::BATCH) as $some) {
                $blocked = [];
                $this->sendRows($this->rows->read(lines: $some), $blocked);
            }
        } catch (\Throwable $error) {
            $this->log('messages of the outbox are left to a relay: ' . $error->getMessage());
        }
    }

    /** Sends all rows. Returns how many. Errors of the database, and of the server that may pass, are thrown. */
    public function relay(): int
    {
        $blocked = [];
        $sent = 0;
        do {
            // Each read begins with the oldest row. A transaction that was slow may have committed rows older than those sent.
            $rows = $this->rows->read(but: array_map(strval(...), array_keys($blocked)));
            $sent += $this->sendRows($rows, $blocked);
        } while (count($rows) === self::BATCH && count($blocked) < self::BLOCKED);
        return $sent;
    }

    /**
     * Sends rows until SIGTERM or SIGINT. Any number of relays may run at once, and lost connections do not end them.
     */
    public function run(): void
    {
        $stops = false;
        $hasSignals = extension_loaded('pcntl');
        foreach ($hasSignals ? [SIGTERM, SIGINT] : [] as $signal) {
            pcntl_signal($signal, static function () use (&$stops): void {
                $stops = true;
            });
        }
        $failures = 0;
        while (!$stops) {
            try {
                $this->relay();
                $failures = 0;
            } catch (\Throwable $error) {
                $failures = min($failures + 1, 2);
                $this->log('the relay of the outbox goes on: ' . $error->getMessage());
                $this->rows->close();
            }
            usleep(self::POLL << $failures);
            // PHP loses a signal that it would handle while an error is on its way.
            $hasSignals && pcntl_signal_dispatch();
        }
    }

    /**
     * Sends rows and deletes those that the server has. Adds the lines of those that it refuses to `blocked`.
     *
     * @param list<Row> $rows
     * @param array<string, true> $blocked
     */
    private function sendRows(array $rows, array &$blocked): int
    {
        $readAt = hrtime(true);
        $sent = [];
        try {
            while ($rows !== []) {
                if ((hrtime(true) - $readAt) / 1e6 > $this->dedup / 2) {
                    // This program was stopped. Others may have sent these rows, so long ago that their ids may be forgotten.
                    break;
                }
                // One row of each line, in order.
                $round = $later = [];
                foreach ($rows as $row) {
                    if (isset($blocked[$row->line])) {
                        continue;
                    }
                    if (isset($round[$row->line])) {
                        $later[] = $row;
                    } else {
                        $round[$row->line] = $row;
                    }
                }
                $byQueue = [];
                foreach ($round as $row) {
                    $byQueue[$row->queue][] = $row;
                }
                foreach ($byQueue as $ofQueue) {
                    array_push($sent, ...$this->sendTo($ofQueue[0]->queue, $ofQueue, $blocked));
                }
                $rows = $later;
            }
        } finally {
            if ($sent !== []) {
                $this->rows->delete($sent);
            }
        }
        return count($sent);
    }

    /**
     * Sends rows of different lines to a queue.
     *
     * @param list<Row> $rows
     * @param array<string, true> $blocked
     * @return list<Row> those that the server has
     */
    private function sendTo(string $queue, array $rows, array &$blocked): array
    {
        $client = ($this->client)();
        $create = ['DQ.CREATE', $queue, 'NX', ...Words::of(['dedup' => $this->dedup] + $this->options)];
        // The queue is made anew where the server has lost it.
        $client->call($queue, $create);
        $this->begin($client, $queue);
        $sent = [];
        foreach ($rows as $row) {
            try {
                // Null: the server has it already. There is no pipeline, because phpredis does not tell errors in it from nulls.
                $client->call($queue, $row->command());
                $sent[] = $row;
                continue;
            } catch (ServerError $error) {
                if ($error->isTransient()) {
                    // A row that was sent is sent again, which adds nothing.
                    throw $error;
                }
            }
            $blocked[$row->line] = true;
            if (!isset($this->refused[$row->messageId]) && count($this->refused) < self::BLOCKED) {
                $this->refused[$row->messageId] = true;
                $this->log("$queue refuses the message $row->messageId of the outbox, which stays there: {$error->getMessage()}");
            }
        }
        // All that this connection has written is confirmed. The command itself does nothing.
        $this->durable?->call($client, $queue, $create);
        return $sent;
    }

    /** Has a queue remember ids for long enough. It is asked once by this object. */
    private function begin(Client $client, string $queue): void
    {
        if (isset($this->begun[$queue])) {
            return;
        }
        $it = new Queue($client, $queue);
        if ((int) $it->info()['dedup'] < $this->dedup) {
            $it->alter(['dedup' => $this->dedup]);
        }
        $this->begun[$queue] = true;
    }

    private function log(string $line): void
    {
        $this->log === null ? error_log("dq: $line") : ($this->log)($line);
    }
}
