<?php

declare(strict_types=1);

namespace Dq;

/**
 * Makes a queue wait for the confirmation of its commands, by WAITAOF or WAIT in the same pipeline: `send`, `sendMany`,
 * `groupPush`, `ack`, `ackSend` and `nack` return when it can no longer be lost, and throw NotConfirmed otherwise.
 *
 * Without arguments, the log of the server must be synced to its disk, so that a power failure takes nothing (WAITAOF, which
 * Redis 7.2 and Valkey have). With appendfsync everysec that takes up to a second.
 */
final class Durable
{
    /**
     * @param int $replicas how many replicas must have it too, in their logs, synced
     * @param bool $inMemory it is enough that the replicas have it in memory: WAIT, which all servers have
     * @param int $timeout for how long (ms) one confirmation may take, less than the client's read timeout
     */
    public function __construct(private int $replicas = 0, private bool $inMemory = false, private int $timeout = 5_000)
    {
        if ($inMemory && $replicas < 1) {
            throw new \InvalidArgumentException('Durable with inMemory needs at least 1 of replicas');
        }
    }

    /**
     * Runs a command once.
     *
     * @param list<string|int> $words
     */
    public function call(Client $client, string $key, array $words): mixed
    {
        if (!$client instanceof PipelineClient) {
            throw new \InvalidArgumentException($client::class . ' cannot confirm commands: it is no PipelineClient');
        }
        $limit = $client->readTimeout();
        if ($limit > 0.0 && $this->timeout >= $limit * 1000) {
            throw new \InvalidArgumentException("a timeout of $this->timeout ms does not fit into the read timeout of $limit s");
        }
        $confirming = $this->inMemory ? ['WAIT'] : ['WAITAOF', 1];
        [$reply, $confirmation] = $client->pipeline($key, [$words, [...$confirming, $this->replicas, $this->timeout]]);
        if ($reply instanceof ServerError) {
            throw $reply;
        }
        $this->check($reply, $confirmation);
        return $reply;
    }

    /**
     * Runs a DQ.SEND with an id, and repeats it for `patience` ms until it is confirmed. Nothing is added twice by that.
     *
     * @param list<string|int> $words
     */
    public function send(Client $client, string $key, array $words, string $id, int $patience): mixed
    {
        $added = null;
        try {
            return Retrying::run(function () use ($client, $key, $words, &$added): mixed {
                try {
                    return $this->call($client, $key, $words);
                } catch (NotConfirmed $missing) {
                    // A repetition finds that the id is taken, by the first try.
                    $missing->reply = $added ??= $missing->reply;
                    throw $missing;
                }
            }, $patience) ?? $added;
        } catch (NotConfirmed $missing) {
            $missing->id = $id;
            throw $missing;
        }
    }

    /**
     * Runs a command about receipts, and repeats it for `patience` ms while there is no reply. `isDone` says whether a reply
     * means that all was done: if a repetition finds receipts stale, the first try may have been done, and lost again.
     *
     * @param list<string|int> $words
     * @param \Closure(mixed): bool $isDone
     */
    public function settle(Client $client, string $key, array $words, int $patience, \Closure $isDone): mixed
    {
        $tries = 0;
        $missing = null;
        $reply = Retrying::run(function () use ($client, $key, $words, &$tries, &$missing): mixed {
            $tries++;
            try {
                return $this->call($client, $key, $words);
            } catch (NotConfirmed $missing) {
                // Another try would find stale receipts.
                return $missing->reply;
            }
        }, $patience);
        if ($missing === null && $tries > 1 && !$isDone($reply)) {
            $why = 'the connection was lost, and then receipts were stale: the first try was done, or their leases are over';
            $missing = new NotConfirmed($why, $reply);
        }
        return $missing === null ? $reply : throw $missing;
    }

    private function check(mixed $reply, mixed $confirmation): void
    {
        if ($confirmation instanceof ServerError) {
            $hint = str_contains($confirmation->getMessage(), 'unknown command')
                ? ' (WAITAOF needs Redis 7.2 or Valkey. With inMemory, replicas confirm on any server)'
                : '';
            throw new NotConfirmed($confirmation->getMessage() . $hint, $reply, refusal: $confirmation);
        }
        [$synced, $replicas] = $this->inMemory ? [0, $confirmation] : $confirmation;
        if ((!$this->inMemory && !$synced) || $replicas < $this->replicas) {
            $log = $synced ? 'synced' : 'not synced';
            $why = "after $this->timeout ms its log was $log, and $replicas of $this->replicas replicas had it";
            throw new NotConfirmed($why, $reply, $synced === 1, $replicas);
        }
    }
}
