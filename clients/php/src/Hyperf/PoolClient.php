<?php

declare(strict_types=1);

namespace Dq\Hyperf;

use Dq\Client;
use Dq\ConnectionError;
use Dq\PhpRedisClient;
use Dq\ServerError;

/** A pool of phpredis connections, one for each coroutine that waits: `RedisFactory::get('default')` of Hyperf. */
final class PoolClient implements Client
{
    /** @param object $pool something with the method rawCommand of phpredis */
    public function __construct(private object $pool)
    {
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        try {
            $reply = $this->pool->rawCommand(...$words);
        } catch (\RedisException $thrown) {
            $text = $thrown->getMessage();
            throw ServerError::isReply($text) ? new ServerError($text, 0, $thrown) : new ConnectionError($text, 0, $thrown);
        }
        // None of the commands of the driver has nil as its reply. The text of an error is with the connection, which has
        // gone back into the pool.
        if ($reply === false) {
            throw new ServerError("ERR the server refused {$words[0]} $key");
        }
        return PhpRedisClient::withNulls($reply);
    }

    public function readTimeout(): float
    {
        return 0.0;
    }
}
