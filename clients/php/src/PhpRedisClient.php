<?php

declare(strict_types=1);

namespace Dq;

use function count;
use function in_array;
use function is_array;

/** The extension phpredis. Raw commands take neither its key prefix nor its serializer. */
final class PhpRedisClient implements PipelineClient, PrefixingClient
{
    /** Commands whose reply is never nil, but for an array that is one. */
    private const NEVER_NIL = [
        'DQ.FETCH', 'DQ.MFETCH', 'DQ.NFETCH', 'DQ.ACK', 'DQ.NACK', 'DQ.TOUCH', 'DQ.MSEND', 'DQ.LEN', 'DQ.INFO', 'DQ.LIST',
        'DQ.FIND', 'DQ.PEEK', 'DQ.GROUPS', 'DQ.CANCEL', 'DQ.RESCHEDULE', 'DQ.UPDATE', 'DQ.REDRIVE', 'DQ.PURGE', 'DQ.SIGNAL',
        'DQ.LIMITS', 'DQ.BATCHES', 'DQ.CHILDREN',
    ];

    /** @param ?\Closure(list<string|int>): mixed $runRaw runs raw words in another way than `rawCommand` of the client */
    public function __construct(private \Redis|\RedisCluster $redis, private ?\Closure $runRaw = null)
    {
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        $isHeld = Signals::hold();
        try {
            return $this->run($key, $words, $waits);
        } finally {
            Signals::release($isHeld);
        }
    }

    private function run(string $key, array $words, bool $waits): mixed
    {
        $verb = strtoupper((string) $words[0]);
        if ($this->redis instanceof \RedisCluster) {
            array_unshift($words, $key);
        }
        // phpredis itself connects again if the connection is lost while it reads, and waits on the new connection for
        // the reply of the old one.
        $retries = $waits && $this->redis instanceof \Redis ? $this->redis->getOption(\Redis::OPT_MAX_RETRIES) : 0;
        if ($retries > 0) {
            $this->redis->setOption(\Redis::OPT_MAX_RETRIES, 0);
        }
        try {
            $this->redis->clearLastError();
            $reply = $this->runRaw === null ? $this->redis->rawCommand(...$words) : ($this->runRaw)($words);
            // Only some errors of the server are thrown.
            $error = $reply === false ? $this->redis->getLastError() : null;
        } catch (\RedisException | \RedisClusterException $thrown) {
            $text = $thrown->getMessage();
            if (ServerError::isReply($text)) {
                throw new ServerError($text, 0, $thrown);
            }
            throw new ConnectionError($text, 0, $thrown);
        } finally {
            if ($retries > 0) {
                $this->redis->setOption(\Redis::OPT_MAX_RETRIES, $retries);
            }
        }
        if ($error !== null) {
            $this->redis->clearLastError();
            throw new ServerError($error);
        }
        // phpredis gives a null array as an empty one, so this is a reply of which too little has come.
        if (($reply === false || $reply === null) && in_array($verb, self::NEVER_NIL, true)) {
            throw new ConnectionError('the connection was lost in the middle of a reply');
        }
        return self::withNulls($reply);
    }

    public function pipeline(string $key, array $commands): array
    {
        if ($this->redis instanceof \RedisCluster) {
            throw new \InvalidArgumentException('phpredis has no pipeline for a cluster');
        }
        $isHeld = Signals::hold();
        try {
            return $this->runPipeline($commands);
        } finally {
            Signals::release($isHeld);
        }
    }

    /** @param list<list<string|int>> $commands two: phpredis tells only the last error of a pipeline */
    private function runPipeline(array $commands): array
    {
        try {
            $this->redis->clearLastError();
            $this->redis->pipeline();
            foreach ($commands as $words) {
                $this->redis->rawCommand(...$words);
            }
            $replies = $this->redis->exec();
            $error = $this->redis->getLastError();
        } catch (\RedisException $thrown) {
            // phpredis has read the other replies, too, and does not report them.
            $text = $thrown->getMessage();
            if (!ServerError::isReply($text)) {
                throw new ConnectionError($text, 0, $thrown);
            }
            // The error may be that of the last command, which a user may have no right to.
            $refusal = new ServerError($text, 0, $thrown);
            $isOfTheLast = stripos($text, "'" . $commands[1][0] . "'") !== false;
            return $isOfTheLast ? [null, $refusal] : [$refusal, null];
        }
        if (!is_array($replies) || count($replies) < count($commands)) {
            throw new ConnectionError('the connection was lost in the middle of the replies');
        }
        if ($error === null) {
            return array_map(self::withNulls(...), $replies);
        }
        $this->redis->clearLastError();
        $refusal = new ServerError($error);
        $failed = array_keys($replies, false, true);
        // If both are false, the first one may be nil, unless no command is run at present.
        $mayBeNil = !in_array(strtoupper((string) $commands[0][0]), self::NEVER_NIL, true);
        if (count($failed) > 1 && $mayBeNil && !$refusal->isTransient() && $refusal->kind() !== 'NOAUTH') {
            array_shift($failed);
        }
        $replies = array_map(self::withNulls(...), $replies);
        foreach ($failed as $at) {
            $replies[$at] = $refusal;
        }
        return $replies;
    }

    /** Waits no longer than this (seconds) for replies from now on. */
    public function limit(float $seconds): void
    {
        $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $seconds);
    }

    public function readTimeout(): float
    {
        $set = $this->redis instanceof \Redis
            ? $this->redis->getReadTimeout()
            : $this->redis->getOption(\Redis::OPT_READ_TIMEOUT);
        $seconds = (float) ($set ?: ini_get('default_socket_timeout'));
        return max(0.0, $seconds);
    }

    public function prefixed(string $key): string
    {
        return $this->redis->_prefix($key);
    }

    /** Gives nil as null: phpredis gives it as false. No reply of dq has a boolean under RESP2. */
    public static function withNulls(mixed $reply): mixed
    {
        if (is_array($reply)) {
            foreach ($reply as &$one) {
                if ($one === false || is_array($one)) {
                    $one = self::withNulls($one);
                }
            }
        }
        return $reply === false ? null : $reply;
    }
}
