<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Laravel\DqServiceProvider;
use Dq\Tests\Server;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\Worker;
use Illuminate\Redis\RedisManager;

/** The parts of an application of Laravel that its queues need. */
final class App
{
    public Container $container;
    public Dispatcher $events;
    /** @var list<\Throwable> what was reported */
    public array $reported = [];

    public function __construct(string $driver, array $connection = [])
    {
        $this->container = $app = new class () extends Container {
            public bool $isDown = false;

            public function isDownForMaintenance(): bool
            {
                return $this->isDown;
            }
        };
        Container::setInstance($app);
        $app->instance(\Illuminate\Contracts\Container\Container::class, $app);
        $app->instance('config', new class ([
            'queue.default' => 'dq',
            'queue.connections.dq' => $connection + ['driver' => 'dq', 'queue' => 'default'],
        ]) extends \ArrayObject {
            public function get(string $name, mixed $default): mixed
            {
                return $this[$name] ?? $default;
            }
        });
        $this->events = new Dispatcher($app);
        $app->instance('events', $this->events);
        $app->instance(\Illuminate\Contracts\Events\Dispatcher::class, $this->events);
        $app->instance('redis', new RedisManager($app, $driver, [
            'options' => ['prefix' => 'app_'],
            'default' => ['host' => Server::host(), 'port' => Server::port(), 'database' => 4],
        ]));
        $app->singleton('queue', fn ($app) => new QueueManager($app));
        $app->instance(\Illuminate\Contracts\Bus\Dispatcher::class, new \Illuminate\Bus\Dispatcher($app));
        $app->instance(ExceptionHandler::class, new class ($this) implements ExceptionHandler {
            public function __construct(private App $app)
            {
            }

            public function report(\Throwable $e)
            {
                $this->app->reported[] = $e;
            }

            public function shouldReport(\Throwable $e)
            {
                return true;
            }

            public function render($request, \Throwable $e)
            {
            }

            public function renderForConsole($output, \Throwable $e)
            {
            }
        });
        $provider = new DqServiceProvider($app);
        $provider->register();
        $provider->boot();
    }

    public function queue(): \Dq\Laravel\DqQueue
    {
        return $this->container['queue']->connection();
    }

    public function worker(): Worker
    {
        return new Worker($this->container['queue'], $this->events, $this->container[ExceptionHandler::class], fn () => false);
    }
}
