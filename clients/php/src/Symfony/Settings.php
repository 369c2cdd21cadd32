<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Dq\LostWorkers;
use Dq\UrlClient;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;

/** The settings in a DSN and its options: dq://user:password@host:6379/queue?redeliver_timeout=60 (dqs:// for TLS). */
final class Settings
{
    private const DEFAULTS = [
        'queue' => 'messages',
        'redeliver_timeout' => 3600,
        'block' => 0,
        'consumer' => null,
        'dbindex' => 0,
        'auth' => null,
        'timeout' => 10.0,
        'patience' => 10.0,
        'lost_workers' => LostWorkers::MOST,
        'outbox' => false,
    ];
    /** Options of Symfony's transport for Redis that have nothing to do here. */
    private const IGNORED = [
        'claim_interval', 'auto_setup', 'delete_after_ack', 'delete_after_reject', 'lazy', 'serializer', 'tls',
        'transport_name',
    ];

    private function __construct(
        public readonly string $url,
        public readonly string $queue,
        public readonly int $lease,
        public readonly int $block,
        public readonly string $consumer,
        public readonly float $timeout,
        public readonly int $patience,
        public readonly int $lostWorkers,
        public readonly bool $outbox,
    ) {
    }

    public static function supports(string $dsn): bool
    {
        return str_starts_with($dsn, 'dq://') || str_starts_with($dsn, 'dqs://');
    }

    /** @param array<string, mixed> $options what the DSN says goes before */
    public static function of(string $dsn, array $options): self
    {
        // parse_url accepts an empty host only in file URLs: dq:///queue is the queue of the local server.
        $parts = self::supports($dsn) ? parse_url(preg_replace('#^dqs?:///#', 'file:///', $dsn)) : false;
        // Errors would show the part of the password that was taken for the host.
        if ($parts === false || UrlClient::hasLateAt($parts)) {
            throw new InvalidArgumentException('The given dq DSN is invalid. A password with /, # or ?, and a queue with @, must be escaped.');
        }
        parse_str($parts['query'] ?? '', $query);
        $given = $query + $options + (isset($options['stream']) ? ['queue' => $options['stream']] : []);
        unset($given['stream']);
        $unknown = array_diff(array_keys($given), array_keys(self::DEFAULTS), self::IGNORED);
        if ($unknown !== []) {
            throw new InvalidArgumentException(sprintf('The dq transport does not know the options "%s".', implode('", "', $unknown)));
        }
        $path = rawurldecode(trim($parts['path'] ?? '', '/'));
        $given = array_filter($given, static fn ($value) => $value !== null) + self::DEFAULTS;
        $queue = $path !== '' ? $path : (string) $given['queue'];
        $block = self::number($given, 'block');
        $timeout = (float) $given['timeout'];
        if ($queue === '' || $given['consumer'] === '') {
            throw new InvalidArgumentException('"queue" and "consumer" should be configured, got an empty string.');
        }
        if ($block >= $timeout * 1000) {
            throw new InvalidArgumentException("The block of $block ms does not fit into the timeout of $timeout s.");
        }
        return new self(
            self::url($dsn, $parts, $given),
            $queue,
            max(1, self::number($given, 'redeliver_timeout') * 1000),
            $block,
            $given['consumer'] ?? gethostname() . ':' . getmypid(),
            $timeout,
            (int) (max(0.0, (float) $given['patience']) * 1000),
            self::number($given, 'lost_workers'),
            filter_var($given['outbox'], FILTER_VALIDATE_BOOLEAN),
        );
    }

    private static function number(array $given, string $name): int
    {
        $number = filter_var($given[$name], FILTER_VALIDATE_INT, ['options' => ['min_range' => 0]]);
        if ($number === false) {
            throw new InvalidArgumentException("The option \"$name\" must be a number of at least 0.");
        }
        return $number;
    }

    private static function url(string $dsn, array $parts, array $given): string
    {
        $login = isset($parts['user']) || isset($parts['pass'])
            ? ($parts['user'] ?? '') . ':' . ($parts['pass'] ?? '')
            : '';
        // As in Symfony's transport for Redis, a word alone before the @ is a password.
        if (isset($parts['user']) && !isset($parts['pass'])) {
            $login = ':' . $parts['user'];
        }
        if ($given['auth'] !== null) {
            [$user, $password] = is_array($given['auth']) ? $given['auth'] : ['', $given['auth']];
            $login = rawurlencode($user) . ':' . rawurlencode($password);
        }
        return sprintf(
            '%s://%s%s:%d/%d',
            str_starts_with($dsn, 'dqs:') ? 'rediss' : 'redis',
            $login === '' ? '' : "$login@",
            $parts['host'] ?? '127.0.0.1',
            $parts['port'] ?? 6379,
            self::number($given, 'dbindex'),
        );
    }
}
