<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

/**
 * The RedisExtIntegrationTest of Symfony's transport for Redis, turned on the transport of dq through `Connection`.
 *
 * Only names are changed, and what takes a message away as another consumer. DqTransportTest has a test for each test
 * that is left out.
 */
final class Suite
{
    private const SOURCE = 'src/Symfony/Component/Messenger/Bridge/Redis/Tests';

    /** Test => why it is left out. */
    public const LEFT_OUT = [
        'testLazyCluster' => 'needs a cluster, for which the transport of dq has no DSN',
        'testFromDsnWithMultipleHosts' => 'needs a cluster, for which the transport of dq has no DSN',
        'testDbIndex' => 'asks the connection of phpredis: testTheQueueAndTheDatabaseOfADsn',
        'testJsonError' => 'bodies that are no text are no error: testBodyHeadersAndTypeAreThoseOfTheMessage',
        'testItProperlyHandlesEmptyMessages' => 'trims the stream: testAMessageThatCannotBeDecodedIsKeptAsADeadOne',
        'testConnectionClaimAndRedeliver' => 'calls XREADGROUP: testAMessageOfALostConsumerIsRedelivered',
    ];

    /** Writes the test into a folder. */
    public static function write(string $symfony, string $folder): void
    {
        $code = file_get_contents("$symfony/" . self::SOURCE . '/Transport/RedisExtIntegrationTest.php');
        foreach (array_keys(self::LEFT_OUT) as $test) {
            $code = self::without($test, $code);
        }
        $names = [
            '/^use Symfony.*Bridge\\\\Redis\\\\Transport\\\\Connection;$/m' => 'use Dq\Tests\Symfony\Connection;',
            "#'redis://localhost/#" => "getenv('MESSENGER_DQ').'/",
            "/'MESSENGER_REDIS_DSN'/" => "'MESSENGER_DQ_DSN'",
            '/\$redis->unlink\(.*?\);/' => '$connection->cleanup();',
            // Another consumer takes the message.
            '/\$this->redis->xreadgroup\(.*?\);/s' => '$this->assertNotNull(Connection::fromDsn(getenv(\'MESSENGER_DQ_DSN\'))->get());',
        ];
        foreach ($names as $theirs => $ours) {
            $code = preg_replace($theirs, str_replace('$', '\$', $ours), $code, -1, $count);
            if ($count === 0) {
                throw new \RuntimeException("this release of Symfony has another RedisExtIntegrationTest: $theirs");
            }
        }
        @mkdir($folder, 0777, true);
        file_put_contents("$folder/RedisExtIntegrationTest.php", $code);
    }

    private static function without(string $test, string $code): string
    {
        $code = preg_replace("/\n(    \\/\\*\\*(?:(?!\\*\\/).)*\\*\\/\n)?    public function $test\\(.*?\n    }\n/s", '', $code, 1, $count);
        return $count === 1 ? $code : throw new \RuntimeException("this release of Symfony has no $test");
    }
}
