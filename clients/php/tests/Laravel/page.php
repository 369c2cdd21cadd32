<?php

/*
 * The parts that an application of Laravel gives to the test in docs/drivers/laravel.md: its TestCase, and the
 * functions `app` and `config`. The queue, the worker and the connections to Redis are those of Laravel.
 */

declare(strict_types=1);

namespace Tests {
    use Dq\Tests\Laravel\App;
    use Illuminate\Support\Facades\Facade;

    abstract class TestCase extends \PHPUnit\Framework\TestCase
    {
        protected function setUp(): void
        {
            $app = new App('phpredis');
            $app->container->instance('queue.worker', $app->worker());
            Facade::setFacadeApplication($app->container);
        }
    }
}

namespace {
    use Illuminate\Container\Container;
    use Illuminate\Redis\RedisManager;

    function app(string $name): mixed
    {
        return Container::getInstance()->make($name);
    }

    /** @param array<string, mixed> $values */
    function config(array $values): void
    {
        $app = Container::getInstance();
        foreach ($values as $name => $value) {
            $app->make('config')[$name] = $value;
        }
        $app->instance('redis', new RedisManager($app, 'phpredis', ['default' => ['url' => $values['database.redis.default.url']]]));
    }
}
