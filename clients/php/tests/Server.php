<?php

declare(strict_types=1);

namespace Dq\Tests;

use Dq\PhpRedisClient;
use Dq\PredisClient;
use Dq\Client;

/** The server under test: DQ_TEST_URL, redis://127.0.0.1:6379 by default. Tests empty its databases. */
final class Server
{
    public static function url(): string
    {
        return getenv('DQ_TEST_URL') ?: 'redis://127.0.0.1:6379';
    }

    public static function host(): string
    {
        return parse_url(self::url(), PHP_URL_HOST);
    }

    public static function port(): int
    {
        return parse_url(self::url(), PHP_URL_PORT) ?: 6379;
    }

    public static function redis(int $database = 0): \Redis
    {
        $redis = new \Redis();
        $redis->connect(self::host(), self::port(), 5.0, null, 0, 10.0);
        $redis->select($database);
        return $redis;
    }

    /** @return array<string, array{string}> */
    public static function clients(): array
    {
        return ['phpredis' => ['phpredis'], 'predis' => ['predis']];
    }

    public static function client(string $name): Client
    {
        if ($name === 'phpredis') {
            return new PhpRedisClient(self::redis());
        }
        $where = ['host' => self::host(), 'port' => self::port(), 'read_write_timeout' => 10];
        return new PredisClient(new \Predis\Client($where));
    }

    /** Waits until the condition holds. */
    public static function until(callable $condition, string $what, float $seconds = 15.0): mixed
    {
        $end = microtime(true) + $seconds;
        while (!($value = $condition())) {
            if (microtime(true) > $end) {
                throw new \RuntimeException("waited in vain for $what");
            }
            usleep(10_000);
        }
        return $value;
    }
}
