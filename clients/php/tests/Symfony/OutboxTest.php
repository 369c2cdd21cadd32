<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Dq\Symfony\AfterCommit;
use Dq\Symfony\DbalRows;
use Dq\Symfony\DqTransport;
use Dq\Symfony\DqTransportFactory;
use Dq\Tests\Server;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

/** The outbox on SQLite. tests/outbox kills programs, and has PostgreSQL and MariaDB. */
final class OutboxTest extends TestCase
{
    private Connection $db;

    protected function setUp(): void
    {
        if (!class_exists(DriverManager::class) || !extension_loaded('pdo_sqlite')) {
            $this->markTestSkipped('needs Doctrine DBAL and SQLite: make setup-optional gets them');
        }
        Server::redis()->flushAll();
    }

    private function transport(bool $tellsOfCommits = true): DqTransport
    {
        $commits = $tellsOfCommits ? new AfterCommit() : null;
        $configuration = new Configuration();
        $configuration->setMiddlewares(array_filter([$commits]));
        $this->db = DriverManager::getConnection(['driver' => 'pdo_sqlite', 'memory' => true], $configuration);
        $this->db->setNestTransactionsWithSavepoints(true);
        $this->db->createSchemaManager()->createTable(DbalRows::table());
        $dsn = sprintf('dq://%s:%d/q?outbox=1', Server::host(), Server::port());
        return (new DqTransportFactory($this->db, $commits))->createTransport($dsn, [], new PhpSerializer());
    }

    private function rows(): int
    {
        return (int) $this->db->fetchOne('SELECT COUNT(*) FROM dq_outbox');
    }

    private static function envelope(string $text): Envelope
    {
        return new Envelope(new Text($text));
    }

    public function testAMessageIsSentWhenItsTransactionIsCommittedAndOnlyThen(): void
    {
        $transport = $this->transport();
        $this->db->transactional(function () use ($transport): void {
            $transport->send(self::envelope('first'));
            try {
                $this->db->transactional(static function () use ($transport): void {
                    $transport->send(self::envelope('of a savepoint that is rolled back'));
                    throw new \LogicException();
                });
            } catch (\LogicException) {
            }
            $transport->send(self::envelope('later')->with(new DelayStamp(60_000)));
            $this->assertSame([2, 0], [$this->rows(), $transport->getMessageCount()]);
        });
        $this->db->beginTransaction();
        $transport->send(self::envelope('of a transaction that is rolled back'));
        $this->db->rollBack();
        $transport->send(self::envelope('without a transaction'));
        $this->assertSame([0, 3], [$this->rows(), $transport->getMessageCount()]);
        $this->assertSame(0, $transport->outbox->relay());
        $texts = [];
        while ($found = [...$transport->get()]) {
            $transport->ack($found[0]);
            $texts[] = $found[0]->getMessage()->text;
        }
        $this->assertSame(['first', 'without a transaction'], $texts);
        $this->assertSame(3_600_000, (int) $transport->queue()->info()['dedup']);
    }

    public function testWithoutTheMiddlewareTheRelaySends(): void
    {
        $transport = $this->transport(false);
        $this->db->transactional(static fn () => $transport->send(self::envelope('x')));
        $this->assertSame([1, 0], [$this->rows(), $transport->getMessageCount()]);
        $this->assertSame(1, $transport->outbox->relay());
        $this->assertSame([0, 1], [$this->rows(), $transport->getMessageCount()]);
    }

    public function testTheOptionNeedsAConnection(): void
    {
        $this->expectException(InvalidArgumentException::class);
        (new DqTransportFactory())->createTransport('dq://localhost/q?outbox=1', [], new PhpSerializer());
    }
}
