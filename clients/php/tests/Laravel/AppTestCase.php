<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Laravel\DqQueue;
use Dq\Tests\Server;
use Illuminate\Queue\WorkerOptions;
use PHPUnit\Framework\TestCase;

/** Tests with an application and its queue connection `dq`, on an empty server. */
abstract class AppTestCase extends TestCase
{
    protected const DRIVERS = [['predis'], ['phpredis']];

    protected App $app;
    protected DqQueue $queue;

    protected function setUp(): void
    {
        Server::redis()->flushAll();
        Note::$seen = [];
    }

    protected function tearDown(): void
    {
        \Illuminate\Container\Container::setInstance(null);
    }

    public static function drivers(): array
    {
        return self::DRIVERS;
    }

    /** @param array<string, mixed> $connection as in config/queue.php */
    protected function start(string $driver, array $connection = []): void
    {
        $this->app = new App($driver, $connection);
        $this->queue = $this->app->queue();
    }

    /** Does the work of `queue:work --queue=...`, until the queues are empty. */
    protected function work(string $queues, array $options = []): void
    {
        $options += ['sleep' => 0, 'stopWhenEmpty' => true, 'maxTries' => 3];
        $made = new WorkerOptions();
        foreach ($options as $name => $value) {
            $made->$name = $value;
        }
        $this->app->worker()->daemon('dq', $queues, $made);
    }
}
