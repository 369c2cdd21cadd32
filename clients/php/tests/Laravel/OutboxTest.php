<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Queue;
use Dq\Tests\Server;
use Illuminate\Database\Connectors\ConnectionFactory;
use Illuminate\Database\DatabaseManager;
use Illuminate\Database\DatabaseTransactionsManager;
use Illuminate\Support\Facades\Facade;
use PHPUnit\Framework\TestCase;

/** The outbox on SQLite. tests/outbox kills programs, and has PostgreSQL and MariaDB. */
final class OutboxTest extends TestCase
{
    private App $app;
    private string $file;

    protected function setUp(): void
    {
        if (!class_exists(DatabaseManager::class) || !extension_loaded('pdo_sqlite')) {
            $this->markTestSkipped('needs Illuminate\Database and SQLite: make setup-optional gets them');
        }
        Server::redis()->flushAll();
        $this->file = (string) tempnam(sys_get_temp_dir(), 'dq-outbox-');
        $this->app = new App('phpredis', ['outbox' => true]);
        $app = $this->app->container;
        $app['config']['database.default'] = 'default';
        $app['config']['database.connections'] = ['default' => ['driver' => 'sqlite', 'database' => $this->file]];
        $app->singleton('db.transactions', static fn () => new DatabaseTransactionsManager());
        $app->singleton('db.factory', static fn ($app) => new ConnectionFactory($app));
        $app->singleton('db', static fn ($app) => new DatabaseManager($app, $app['db.factory']));
        $app['db']->connection()->setTransactionManager($app['db.transactions']);
        $app->instance('db.schema', $app['db']->connection()->getSchemaBuilder());
        Facade::setFacadeApplication($app);
        (require __DIR__ . '/../../src/Laravel/migrations/2026_01_01_000000_create_dq_outbox.php')->up();
    }

    protected function tearDown(): void
    {
        isset($this->file) && unlink($this->file);
    }

    public function testAJobIsSentWhenItsTransactionIsCommittedAndOnlyThen(): void
    {
        $db = $this->app->container['db']->connection();
        $queue = $this->app->queue();
        $db->transaction(function () use ($db, $queue): void {
            $queue->push('first');
            try {
                $db->transaction(static function () use ($queue): void {
                    $queue->push('of a savepoint that is rolled back');
                    throw new \LogicException();
                });
            } catch (\LogicException) {
            }
            $queue->bulk(['second', 'third']);
            $this->assertSame(3, $db->table('dq_outbox')->count());
            $this->assertSame(0, $queue->size());
        });
        $db->beginTransaction();
        $queue->push('of a transaction that is rolled back');
        $db->rollBack();
        $queue->later(60, 'without a transaction');
        $this->assertSame(0, $db->table('dq_outbox')->count());
        $this->assertSame(4, $queue->size());
        $this->assertSame(0, $queue->outbox()->relay());
        foreach (['first', 'second', 'third'] as $name) {
            $job = $queue->pop();
            $this->assertSame($name, $job->getName());
            $job->delete();
        }
        $this->assertSame(1, $queue->delayedSize());
    }

    public function testWhatAProcessHasLeftIsSentByTheRelayOnceAndARefusedRowHoldsOnlyItsGroup(): void
    {
        $db = $this->app->container['db']->connection();
        $queue = $this->app->queue();
        $log = ini_set('error_log', '/dev/null');
        foreach ([['1', []], ['bad', ['priority' => 1000]], ['2', ['group' => 'a', 'priority' => 1000]], ['3', ['group' => 'a']]] as [$id, $options]) {
            $queue->pushRaw(json_encode(['id' => $id]), null, ['id' => $id] + $options);
        }
        $this->assertSame(['bad', '2', '3'], $db->table('dq_outbox')->orderBy('seq')->pluck('message_id')->all());
        $row = ['message_id' => '1', 'queue' => 'app_dq:default', 'line' => 'x', 'message' => '{"payload": "1", "words": ["ID", "1"]}'];
        $db->table('dq_outbox')->insert($row);
        $this->assertSame(1, $queue->outbox()->relay());
        ini_set('error_log', (string) $log);
        $this->assertSame(3, $db->table('dq_outbox')->count());
        $this->assertSame(1, $queue->size());
        $this->assertSame(3_600_000, (int) $queue->on(null)->info()['dedup']);
    }
}
