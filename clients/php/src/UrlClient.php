<?php

declare(strict_types=1);

namespace Dq;

/**
 * A client that connects when it is first used, and again after a lost connection. It repeats no command by itself.
 *
 *     redis://user:password@host:6379/0    rediss:// for TLS, unix:///run/redis.sock for a socket
 */
final class UrlClient implements PipelineClient
{
    /** Seconds for which a new connection may take. */
    private const CONNECTING = 5.0;

    private PhpRedisClient|PredisClient|null $client = null;
    private float $limit;
    /** @var array{scheme: string, host: string, port: int, user: ?string, pass: ?string, database: int} */
    private array $parts;

    /** @param float $timeout seconds for which it waits for a reply, more than the longest BLOCK */
    public function __construct(string $url, private float $timeout = 10.0)
    {
        $this->parts = self::parse($url);
        $this->limit = $timeout;
    }

    /** Waits no longer than this (seconds) for replies from now on. Null: for as long as it was made for. */
    public function limit(?float $seconds): void
    {
        $seconds ??= $this->timeout;
        if ($seconds !== $this->limit) {
            $this->limit = $seconds;
            $this->client?->limit($seconds);
        }
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        $isHeld = Signals::hold();
        try {
            return $this->open()->call($key, $words, $waits);
        } catch (ConnectionError $lost) {
            $this->client = null;
            throw $lost;
        } finally {
            Signals::release($isHeld);
        }
    }

    public function pipeline(string $key, array $commands): array
    {
        $isHeld = Signals::hold();
        try {
            return $this->open()->pipeline($key, $commands);
        } catch (ConnectionError $lost) {
            $this->client = null;
            throw $lost;
        } finally {
            Signals::release($isHeld);
        }
    }

    public function readTimeout(): float
    {
        return $this->timeout;
    }

    /** Connects, if it is not connected. Returns the client of this connection. */
    public function open(): PipelineClient
    {
        return $this->client ??= extension_loaded('redis') ? $this->phpRedis() : $this->predis();
    }

    /** Returns another client for the same server, which is not connected. */
    public function fresh(): self
    {
        $other = clone $this;
        $other->client = null;
        $other->limit = $other->timeout;
        return $other;
    }

    private function phpRedis(): PhpRedisClient
    {
        $redis = new \Redis();
        ['scheme' => $scheme, 'host' => $host, 'port' => $port, 'user' => $user, 'pass' => $pass] = $this->parts;
        try {
            $address = $scheme === 'rediss' ? "tls://$host" : $host;
            $redis->connect($address, $scheme === 'unix' ? 0 : $port, self::CONNECTING, null, 0, $this->limit);
            $redis->setOption(\Redis::OPT_MAX_RETRIES, 0);
            if ($pass !== null) {
                $redis->auth($user === null ? $pass : [$user, $pass]);
            }
            if ($this->parts['database'] !== 0 && !$redis->select($this->parts['database'])) {
                throw new ServerError((string) $redis->getLastError());
            }
        } catch (\RedisException $thrown) {
            $text = $thrown->getMessage();
            throw ServerError::isReply($text) ? new ServerError($text, 0, $thrown) : new ConnectionError($text, 0, $thrown);
        }
        return new PhpRedisClient($redis);
    }

    private function predis(): PredisClient
    {
        ['scheme' => $scheme, 'host' => $host, 'port' => $port, 'user' => $user, 'pass' => $pass] = $this->parts;
        $where = $scheme === 'unix'
            ? ['scheme' => 'unix', 'path' => $host]
            : ['scheme' => $scheme === 'rediss' ? 'tls' : 'tcp', 'host' => $host, 'port' => $port];
        $redis = new \Predis\Client($where + [
            'username' => $user,
            'password' => $pass,
            'database' => $this->parts['database'] ?: null,
            'timeout' => self::CONNECTING,
            'read_write_timeout' => $this->limit,
        ]);
        try {
            $redis->connect();
        } catch (\Predis\CommunicationException $thrown) {
            throw new ConnectionError($thrown->getMessage(), 0, $thrown);
        } catch (\Predis\Response\ServerException $thrown) {
            throw new ServerError($thrown->getMessage(), 0, $thrown);
        }
        return new PredisClient($redis);
    }

    /**
     * Returns whether an @ comes after the part that was taken for the host. That part belongs to the password then.
     *
     * @param array<string, string|int> $parts as parse_url gives them
     */
    public static function hasLateAt(array $parts): bool
    {
        $name = explode('=', $parts['query'] ?? '')[0];
        return str_contains(($parts['path'] ?? '') . ($parts['fragment'] ?? '') . $name, '@');
    }

    /** @return array{scheme: string, host: string, port: int, user: ?string, pass: ?string, database: int} */
    private static function parse(string $url): array
    {
        $socket = str_starts_with($url, 'unix://');
        // parse_url accepts an empty host only in file URLs.
        $found = parse_url($socket ? 'file' . substr($url, 4) : $url);
        if ($found === false || !in_array($found['scheme'] ?? '', ['redis', 'rediss', 'file'], true)) {
            // Errors are logged, and the URL may have a password.
            throw new \InvalidArgumentException('the URL is none of redis://host:port, rediss://host:port and unix:///path');
        }
        if (!$socket && self::hasLateAt($found)) {
            // The error of the host's look-up would show the password.
            throw new \InvalidArgumentException('the password in the URL has a /, # or ?, which must be escaped');
        }
        parse_str($found['query'] ?? '', $query);
        $text = static fn (string $name): ?string => isset($found[$name]) && $found[$name] !== '' ? rawurldecode($found[$name]) : null;
        return [
            'scheme' => $socket ? 'unix' : $found['scheme'],
            'host' => $socket ? $found['path'] : ($found['host'] ?? '127.0.0.1'),
            'port' => $found['port'] ?? 6379,
            'user' => $text('user'),
            'pass' => $text('pass'),
            'database' => (int) ($query['db'] ?? ($socket ? 0 : trim($found['path'] ?? '', '/'))),
        ];
    }
}
