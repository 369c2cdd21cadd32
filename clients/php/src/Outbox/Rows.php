<?php

declare(strict_types=1);

namespace Dq\Outbox;

/** The table, in the database of a framework. */
interface Rows
{
    /** Adds a row in the transaction of the caller. */
    public function insert(Row $row): void;

    /** Has this called when the transaction of the caller is committed, or now if there is none. */
    public function afterCommit(\Closure $call): void;

    /**
     * Returns the oldest committed rows, at most Outbox::BATCH: only those of some lines, or without those of some.
     *
     * @param list<string> $lines
     * @param list<string> $but
     * @return list<Row>
     */
    public function read(array $lines = [], array $but = []): array;

    /**
     * Deletes rows by seq and id, since a sequence may begin again, after a restore say.
     *
     * @param list<Row> $rows
     */
    public function delete(array $rows): void;

    /** Gives up a connection that may be broken, so that the next call opens another one. */
    public function close(): void;
}
