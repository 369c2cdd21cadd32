<?php

declare(strict_types=1);

namespace Dq;

/** The methods of a Queue that show its content. */
trait Inspection
{
    /** DQ.GET: returns all fields of one message, under the names of the command reference, or null. */
    public function get(string $id): ?array
    {
        return Reply::record($this->do('GET', $id) ?: []) ?: null;
    }

    /**
     * DQ.LIST: yields all messages in a state, in the order of that state. Options: group, type, and count (a page).
     * A message that moves within the state meanwhile (touch, reschedule) may come twice or not at all.
     *
     * @return \Generator<array<string, mixed>>
     */
    public function list(string $state, array $options = []): \Generator
    {
        return $this->pages(['LIST', $state], $options, Reply::record(...));
    }

    /**
     * DQ.FIND: yields the messages in a state to which all conditions apply: id, type, group, batch, parent => [key, id],
     * header => [field, value], error, payload, since, until. Options: rev, and count (how many are looked at in one round
     * trip).
     *
     * @return \Generator<array<string, mixed>>
     */
    public function find(string $state, array $conditions = []): \Generator
    {
        return $this->pages(['FIND', $state], $conditions + ['count' => 1000], Reply::record(...));
    }

    /** DQ.FIND DO REDRIVE: makes the dead messages that it finds pending again. Returns how many. */
    public function redriveFound(array $conditions = []): int
    {
        return $this->changeFound('REDRIVE', 'dead', $conditions);
    }

    /** DQ.FIND DO CANCEL: cancels the messages that it finds. Returns how many. */
    public function cancelFound(string $state, array $conditions = []): int
    {
        return $this->changeFound('CANCEL', $state, $conditions);
    }

    /** DQ.FIND DO PURGE: removes the messages that it finds. Returns how many. */
    public function purgeFound(string $state, array $conditions = []): int
    {
        return $this->changeFound('PURGE', $state, $conditions);
    }

    private function changeFound(string $what, string $state, array $conditions): int
    {
        $total = 0;
        $cursor = '0';
        do {
            $words = Words::of(['cursor' => $cursor] + $conditions + ['do' => $what]);
            [$cursor, $done] = $this->do('FIND', $state, ...$words);
            $total += $done;
        } while ($cursor !== '0');
        return $total;
    }

    /**
     * DQ.PEEK: returns the messages that `fetch` would take next, without taking them.
     *
     * @return list<array<string, mixed>>
     */
    public function peek(int $count = 1): array
    {
        return array_map(Reply::record(...), $this->do('PEEK', 'COUNT', $count));
    }

    /** DQ.LEN: returns the number of pending and running messages, or of those in one state. */
    public function len(?string $state = null): int
    {
        return $this->do('LEN', ...($state === null ? [] : [$state]));
    }

    /**
     * DQ.INFO: returns states, options and counters, under the names of the command reference.
     *
     * @return array<string, mixed>
     */
    public function info(): array
    {
        return Reply::map($this->do('INFO'));
    }

    /**
     * DQ.GROUPS: yields the groups that have messages, settings or a hold. Options: state, and count (a page).
     *
     * @return \Generator<array<string, mixed>>
     */
    public function groups(array $options = []): \Generator
    {
        return $this->pages(['GROUPS'], $options, Reply::map(...));
    }

    /**
     * DQ.BATCHES: yields the open batches. Options: count (a page).
     *
     * @return \Generator<array<string, mixed>>
     */
    public function batches(array $options = []): \Generator
    {
        return $this->pages(['BATCHES'], $options, Reply::map(...));
    }

    /**
     * DQ.CHILDREN: yields the children of a message, and their states. Options: count (a page).
     *
     * @return \Generator<array<string, mixed>>
     */
    public function children(string $id, array $options = []): \Generator
    {
        return $this->pages(['CHILDREN', $id], $options, Reply::map(...));
    }

    /**
     * DQ.LIMITS: yields the limits with names, and each name of which something is used. Options: count (a page).
     *
     * @return \Generator<array<string, mixed>>
     */
    public function limits(array $options = []): \Generator
    {
        return $this->pages(['LIMITS'], $options, Reply::limit(...));
    }

    /**
     * DQ.CONSUMERS: returns the consumers that fetched under a name, and the messages that they hold.
     *
     * @return list<array<string, mixed>>
     */
    public function consumers(): array
    {
        return array_map(Reply::map(...), $this->do('CONSUMERS'));
    }

    /** DQ.EXPLAIN: returns why a message is in its state (code, why, until, by), or null for an unknown id. */
    public function explain(string $id): ?array
    {
        return Reply::map($this->do('EXPLAIN', $id) ?: []) ?: null;
    }

    /**
     * DQ.WAIT: waits until the message has ended. Returns [state, result or error], or null at the timeout or if the id
     * is unknown. The timeout (ms) must be shorter than the client's read timeout.
     *
     * @return ?array{string, ?string}
     */
    public function wait(string $id, int $timeout): ?array
    {
        $waits = $this->checkedBlock($timeout);
        return $this->client->call($this->key, ['DQ.WAIT', $this->key, $id, $timeout], $waits) ?: null;
    }
}
