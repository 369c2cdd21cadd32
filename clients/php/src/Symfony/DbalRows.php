<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Schema\Table;
use Doctrine\DBAL\Types\Types;
use Dq\Outbox\Outbox;
use Dq\Outbox\Row;
use Dq\Outbox\Rows;

/** The table `dq_outbox` in a database of Doctrine. */
final class DbalRows implements Rows
{
    /** @param ?AfterCommit $commits tells of commits, if it is a middleware of the connection. Else all is left to the relay */
    public function __construct(private Connection $connection, private ?AfterCommit $commits = null)
    {
    }

    /** Returns the table, for a migration. */
    public static function table(): Table
    {
        $table = new Table('dq_outbox');
        $table->addColumn('seq', Types::BIGINT)->setAutoincrement(true)->setNotnull(true);
        $table->addColumn('message_id', Types::STRING, ['length' => 1024]);
        $table->addColumn('queue', Types::STRING, ['length' => 1024]);
        $table->addColumn('line', Types::STRING, ['length' => 32]);
        $table->addColumn('message', Types::TEXT);
        $table->setPrimaryKey(['seq']);
        $table->addIndex(['line', 'seq'], 'dq_outbox_line');
        return $table;
    }

    public function insert(Row $row): void
    {
        $this->connection->insert('dq_outbox', $row->columns());
    }

    public function afterCommit(\Closure $call): void
    {
        if (!$this->connection->isTransactionActive()) {
            $call();
        } else {
            $this->commits?->add($call);
        }
    }

    public function read(array $lines = [], array $but = []): array
    {
        $where = array_filter([$lines ? 'line IN (' . self::marks($lines) . ')' : '', $but ? 'line NOT IN (' . self::marks($but) . ')' : '']);
        $sql = 'SELECT * FROM dq_outbox' . ($where ? ' WHERE ' . implode(' AND ', $where) : '') . ' ORDER BY seq LIMIT ' . Outbox::BATCH;
        return array_map(Row::from(...), $this->connection->fetchAllAssociative($sql, [...$lines, ...$but]));
    }

    public function delete(array $rows): void
    {
        $marks = self::marks($rows);
        $sql = "DELETE FROM dq_outbox WHERE seq IN ($marks) AND message_id IN ($marks)";
        $this->connection->executeStatement($sql, [...array_column($rows, 'seq'), ...array_column($rows, 'messageId')]);
    }

    public function close(): void
    {
        $this->connection->close();
    }

    private static function marks(array $values): string
    {
        return implode(', ', array_fill(0, count($values), '?'));
    }
}
