<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Outbox\Outbox;
use Dq\Outbox\Row;
use Dq\Outbox\Rows;
use Illuminate\Database\Connection;
use Illuminate\Database\Query\Builder;

/** The table `dq_outbox` in a database of Laravel. */
final class TableRows implements Rows
{
    /** @param \Closure(): Connection $connection returns the connection, also after it was lost */
    public function __construct(private \Closure $connection)
    {
    }

    public function insert(Row $row): void
    {
        $this->table()->insert($row->columns());
    }

    public function afterCommit(\Closure $call): void
    {
        ($this->connection)()->afterCommit($call);
    }

    public function read(array $lines = [], array $but = []): array
    {
        $found = $this->table()
            ->when($lines, static fn (Builder $query) => $query->whereIn('line', $lines))
            ->when($but, static fn (Builder $query) => $query->whereNotIn('line', $but))
            ->orderBy('seq')->limit(Outbox::BATCH)->get();
        return array_map(static fn (object $row): Row => Row::from((array) $row), $found->all());
    }

    public function delete(array $rows): void
    {
        $this->table()
            ->whereIn('seq', array_column($rows, 'seq'))
            ->whereIn('message_id', array_column($rows, 'messageId'))
            ->delete();
    }

    public function close(): void
    {
        ($this->connection)()->disconnect();
    }

    private function table(): Builder
    {
        return ($this->connection)()->table('dq_outbox');
    }
}
