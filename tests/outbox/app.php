<?php

/*
 * php tests/outbox/app.php FRAMEWORK ROLE SETTINGS: the shop of app.py with laravel, symfony, or laravel-own (Laravel's own
 * driver for Redis, with after_commit).
 */

declare(strict_types=1);

require __DIR__ . '/../../clients/php/autoload.php';
[, $framework, $role, $settings] = $argv;
$settings = json_decode($settings, true);
ini_set('error_log', '/dev/null');

final class RolledBack extends Exception
{
}

final class Order
{
    public function __construct(public string $token, public string $messageGroup)
    {
    }
}

/** Connections of Laravel's databases, queues and Redis. */
final class LaravelShop
{
    public Illuminate\Database\Connection $db;
    private Illuminate\Contracts\Queue\Queue $queue;

    public function __construct(private array $settings, private bool $isOwn)
    {
        foreach (['Database', 'Queue', 'Redis', 'Events', 'Bus'] as $package) {
            require_once "/usr/share/php/Illuminate/$package/autoload.php";
        }
        $app = new Illuminate\Container\Container();
        Illuminate\Container\Container::setInstance($app);
        [$host, $port] = explode(':', substr($settings['redis'], strlen('redis://')));
        $app->instance('config', new class ([
            'database.default' => 'default',
            'database.connections' => ['default' => $settings['laravel']],
            'queue.default' => $isOwn ? 'own' : 'dq',
            'queue.connections.dq' => ['driver' => 'dq', 'queue' => $settings['queue'], 'outbox' => true],
            'queue.connections.own' => ['driver' => 'redis', 'connection' => 'default', 'queue' => $settings['queue'], 'after_commit' => true],
        ]) extends ArrayObject {
            public function get(string $name, mixed $default): mixed
            {
                return $this[$name] ?? $default;
            }
        });
        $app->singleton('db.transactions', static fn () => new Illuminate\Database\DatabaseTransactionsManager());
        $app->singleton('db.factory', static fn ($app) => new Illuminate\Database\Connectors\ConnectionFactory($app));
        $app->singleton('db', static fn ($app) => new Illuminate\Database\DatabaseManager($app, $app['db.factory']));
        $app->instance('redis', new Illuminate\Redis\RedisManager($app, 'phpredis', ['default' => ['host' => $host, 'port' => (int) $port]]));
        $app->instance('events', new Illuminate\Events\Dispatcher($app));
        $app->singleton('queue', static fn ($app) => new Illuminate\Queue\QueueManager($app));
        $provider = new Dq\Laravel\DqServiceProvider($app);
        $provider->register();
        $provider->boot();
        $app['queue']->addConnector('redis', static fn () => new Illuminate\Queue\Connectors\RedisConnector($app['redis']));
        $this->db = $app['db']->connection();
        $this->db->setTransactionManager($app['db.transactions']);
        $this->queue = $app['queue']->connection();
    }

    public function setup(): void
    {
        Illuminate\Support\Facades\Facade::setFacadeApplication(Illuminate\Container\Container::getInstance());
        Illuminate\Container\Container::getInstance()->instance('db.schema', $this->db->getSchemaBuilder());
        (require __DIR__ . '/../../clients/php/src/Laravel/migrations/2026_01_01_000000_create_dq_outbox.php')->up();
    }

    public function execute(string $sql, array $values = []): array
    {
        return array_map(array_values(...), array_map(static fn ($row) => (array) $row, $this->db->select($sql, $values)));
    }

    public function change(string $sql, array $values = []): void
    {
        $this->db->statement($sql, $values);
    }

    public function transaction(Closure $do): void
    {
        $this->db->transaction($do);
    }

    public function send(string $shop, string $payload): void
    {
        $this->queue->push(new Order($payload, $shop));
    }

    public function lost(): void
    {
        $this->db->disconnect();
    }

    public function relay(): void
    {
        $this->queue->outbox()->run();
    }
}

/** Doctrine's connection with the transport of Symfony Messenger. */
final class SymfonyShop
{
    public Doctrine\DBAL\Connection $db;
    private Dq\Symfony\DqTransport $transport;

    public function __construct(array $settings)
    {
        foreach (['Doctrine/DBAL', 'Symfony/Component/Messenger'] as $package) {
            require_once "/usr/share/php/$package/autoload.php";
        }
        $commits = new Dq\Symfony\AfterCommit();
        $configuration = new Doctrine\DBAL\Configuration();
        $configuration->setMiddlewares([$commits]);
        $this->db = Doctrine\DBAL\DriverManager::getConnection($settings['doctrine'], $configuration);
        $this->db->setNestTransactionsWithSavepoints(true);
        $factory = new Dq\Symfony\DqTransportFactory($this->db, $commits);
        $dsn = str_replace('redis://', 'dq://', $settings['redis']) . "/{$settings['queue']}?outbox=1";
        $serializer = new Symfony\Component\Messenger\Transport\Serialization\PhpSerializer();
        $this->transport = $factory->createTransport($dsn, [], $serializer);
    }

    public function setup(): void
    {
        $this->db->createSchemaManager()->createTable(Dq\Symfony\DbalRows::table());
    }

    public function execute(string $sql, array $values = []): array
    {
        return $this->db->fetchAllNumeric($sql, $values);
    }

    public function change(string $sql, array $values = []): void
    {
        $this->db->executeStatement($sql, $values);
    }

    public function transaction(Closure $do): void
    {
        $this->db->transactional($do);
    }

    public function send(string $shop, string $payload): void
    {
        $stamp = new Dq\Symfony\DqStamp(['group' => $shop]);
        $this->transport->send(new Symfony\Component\Messenger\Envelope(new Order($payload, $shop), [$stamp]));
    }

    public function lost(): void
    {
        $this->db->close();
    }

    public function relay(): void
    {
        $this->transport->outbox->run();
    }
}

function rolled_back(LaravelShop|SymfonyShop $shop, Closure $do): void
{
    try {
        $shop->transaction(static function () use ($do): void {
            $do();
            throw new RolledBack();
        });
    } catch (RolledBack) {
    }
}

$shop = $framework === 'symfony' ? new SymfonyShop($settings) : new LaravelShop($settings, $framework === 'laravel-own');
if ($role === 'setup') {
    $shop->setup();
    $shop->change('CREATE TABLE orders (shop INTEGER, n INTEGER, token VARCHAR(36), PRIMARY KEY (shop, n))');
    exit(0);
}
if ($role === 'relay') {
    $shop->relay();
    exit(0);
}
while (true) {
    $token = Dq\Queue::uuid();
    $isRolledBack = random_int(1, 5) === 1;
    $order = static function () use ($shop, $role, $token, $isRolledBack): void {
        rolled_back($shop, static fn () => $shop->send($role, "savepoint of $token"));
        [[$n]] = $shop->execute('SELECT COALESCE(MAX(n), 0) + 1 FROM orders WHERE shop = ?', [(int) $role]);
        $shop->change('INSERT INTO orders VALUES (?, ?, ?)', [(int) $role, (int) $n, $token]);
        $shop->send($role, $isRolledBack ? "rolled back $token" : $token);
    };
    try {
        $isRolledBack ? rolled_back($shop, $order) : $shop->transaction($order);
        usleep(10_000);
    } catch (Throwable) {
        // The database is away.
        try {
            $shop->lost();
        } catch (Throwable) {
        }
        usleep(50_000);
    }
}
