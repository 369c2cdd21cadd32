<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

/**
 * Laravel's own tests/Queue/RedisQueueIntegrationTest.php, turned on this driver.
 *
 * Only names are changed: the two classes, and the lengths of Redis' lists and sets, which become the methods for them.
 * Tests that read what is inside of those are left out, and DqQueueTest has a test of the same name for each.
 */
final class Suite
{
    private const SOURCE = 'tests/Queue/RedisQueueIntegrationTest.php';

    /** Test => why it is left out. */
    public const LEFT_OUT = [
        'testExpiredJobsArePopped' => 'past due times keep the order of sending',
        'testMigrateMoreThan100Jobs' => 'past due times keep the order of sending',
        'testPopProperlyPopsJobOffOfRedis' => 'reads the set of reserved jobs',
        'testPopProperlyPopsDelayedJobOffOfRedis' => 'reads the set of reserved jobs',
        'testPopPopsDelayedJobOffOfRedisWhenExpireNull' => 'reads the set of reserved jobs',
        'testNotExpireJobsWhenExpireNull' => 'reads the set of reserved jobs',
        'testExpireJobsWhenExpireSet' => 'reads the set of reserved jobs',
        'testRelease' => 'reads the set of delayed jobs',
    ];

    private const NAMES = [
        'Illuminate\Queue\RedisQueue;' => 'Dq\Laravel\DqQueue;',
        'Illuminate\Queue\Jobs\RedisJob;' => 'Dq\Laravel\DqJob;',
        'new RedisQueue(' => 'new DqQueue(',
        'RedisJob::class' => 'DqJob::class',
        'getReservedJob()' => 'getRawBody()',
        '$this->redis[$driver]->connection()->zcard(\'queues:default:reserved\')' => '$this->queue->reservedSize()',
        '$this->redis[$driver]->connection()->zcard(\'queues:default:delayed\')' => '$this->queue->delayedSize()',
        '$this->redis[$driver]->connection()->llen(\'queues:default\')' => '$this->queue->pendingSize()',
        // The list that wakes workers has no counterpart in dq.
        '$this->redis[$driver]->connection()->llen(\'queues:default:notify\')' => '0',
        'namespace Illuminate\Tests\Queue;' => "namespace Illuminate\Tests\Queue;\n\nrequire_once __DIR__ . '/InteractsWithRedis.php';",
        // The trait needs this property, and would make a whole application.
        '    private $queue;' => "    private \$queue;\n    private \$app = null;",
        'parent::setUp();' => "parent::setUp();\n        \$this->app = new Container();",
    ];

    /** Writes the test into a folder, with the trait that it uses. */
    public static function write(string $laravel, string $folder): void
    {
        $code = file_get_contents("$laravel/" . self::SOURCE);
        foreach (array_keys(self::LEFT_OUT) as $test) {
            $code = self::without($test, $code);
        }
        foreach (self::NAMES as $theirs => $ours) {
            if (!str_contains($code, $theirs)) {
                throw new \RuntimeException('this release of Laravel has another ' . self::SOURCE . ": $theirs");
            }
            $code = str_replace($theirs, $ours, $code);
        }
        @mkdir($folder, 0777, true);
        $trait = file_get_contents("$laravel/src/Illuminate/Foundation/Testing/Concerns/InteractsWithRedis.php");
        // The reader of the environment needs one more package.
        file_put_contents("$folder/InteractsWithRedis.php", str_replace('Env::get(', '\\' . self::class . '::env(', $trait));
        file_put_contents("$folder/RedisQueueIntegrationTest.php", $code);
    }

    public static function env(string $name, mixed $default = null): mixed
    {
        return getenv($name) ?: $default;
    }

    private static function without(string $test, string $code): string
    {
        $start = strpos($code, "    public function $test(");
        if ($start === false) {
            throw new \RuntimeException("this release of Laravel has no $test");
        }
        $start = strrpos(substr($code, 0, $start), '    /**');
        $end = strpos($code, "\n    }\n", $start) + strlen("\n    }\n");
        return substr($code, 0, $start) . ltrim(substr($code, $end), "\n");
    }
}
