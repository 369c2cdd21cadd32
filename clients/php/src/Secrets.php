<?php

declare(strict_types=1);

namespace Dq;

use function is_string;
use function strlen;

/**
 * Payloads and headers that only the programs with a key can read: AES-256-GCM, alike in all languages (docs/secrets.md).
 *
 *     $secrets = new Secrets(['2026' => $key]);
 *     $queue = new Queue($client, 'mails', middleware: [$secrets]);
 */
final class Secrets extends Coding
{
    /** The header that names the key of a message. */
    private const KEY = 'dq-key';
    /** It comes before the names of headers that are encrypted. */
    private const SEALED = 'dq-sealed:';
    private const CIPHER = 'aes-256-gcm';
    private const NONCE = 12;
    private const TAG = 16;

    private string $key;

    /**
     * @param array<string, string> $keys 32 bytes each by their ids. The first one encrypts, and all of them decrypt
     * @param list<string> $headers the headers that are encrypted with the payload
     * @param list<string> $queues keys of other queues that messages may have been sent to before (DEADTO)
     * @param bool $plain whether messages without a key are accepted, too
     */
    public function __construct(private array $keys, private array $headers = [], private array $queues = [], private bool $plain = false)
    {
        if ($keys === [] || array_filter($keys, static fn (string $key): bool => strlen($key) !== 32) !== []) {
            throw new \InvalidArgumentException('Secrets needs at least one key, and each has 32 bytes');
        }
        $this->key = (string) array_key_first($keys);
    }

    /**
     * Encrypts the payload and the headers of a message of this queue and id.
     *
     * @param array<string, string> $headers
     * @return array{string, array<string, string>}
     */
    public function seal(string $queue, string $id, string $payload, array $headers = []): array
    {
        $sealed = [self::KEY => $this->key];
        foreach ($headers as $name => $value) {
            if (in_array((string) $name, $this->headers, true)) {
                $sealed[self::SEALED . $name] = base64_encode($this->encrypt($queue, $id, "header:$name", (string) $value));
            } else {
                $sealed[$name] = $value;
            }
        }
        return [$this->encrypt($queue, $id, 'payload', $payload), $sealed];
    }

    /**
     * Returns the payload and the headers of a message as they were. Throws Reject if this is not what was sent with this id to
     * one of the queues, and an OutOfBoundsException for an unknown key.
     *
     * @param array<string, string> $headers
     * @return array{string, array<string, string>}
     */
    public function open(string $queue, string $id, string $payload, array $headers): array
    {
        $name = $headers[self::KEY] ?? null;
        unset($headers[self::KEY]);
        if ($name === null) {
            return $this->plain ? [$payload, $headers] : throw new Reject('the message is not encrypted');
        }
        $key = $this->keys[$name] ?? throw new \OutOfBoundsException("there is no key \"$name\"");
        foreach ([$queue, ...$this->queues] as $one) {
            $opened = self::decrypt($key, $one, $id, 'payload', $payload);
            $plain = $sealed = [];
            foreach ($headers as $field => $value) {
                if (str_starts_with((string) $field, self::SEALED)) {
                    $bare = substr($field, strlen(self::SEALED));
                    $sealed[$bare] = self::decrypt($key, $one, $id, "header:$bare", (string) base64_decode($value, true));
                } else {
                    $plain[$field] = $value;
                }
            }
            if ($opened !== null && !in_array(null, $sealed, true)) {
                return [$opened, $sealed + $plain];
            }
        }
        throw new Reject('the message is not what was sent with this id to this queue');
    }

    private function encrypt(string $queue, string $id, string $part, string $text): string
    {
        $nonce = random_bytes(self::NONCE);
        $tag = '';
        $sealed = openssl_encrypt($text, self::CIPHER, $this->keys[$this->key], OPENSSL_RAW_DATA, $nonce, $tag, self::associated($queue, $id, $part), self::TAG);
        return is_string($sealed) ? $nonce . $sealed . $tag : throw new \RuntimeException('OpenSSL cannot encrypt: ' . openssl_error_string());
    }

    private static function decrypt(string $key, string $queue, string $id, string $part, string $sealed): ?string
    {
        if (strlen($sealed) < self::NONCE + self::TAG) {
            return null;
        }
        [$nonce, $text, $tag] = [substr($sealed, 0, self::NONCE), substr($sealed, self::NONCE, -self::TAG), substr($sealed, -self::TAG)];
        $opened = openssl_decrypt($text, self::CIPHER, $key, OPENSSL_RAW_DATA, $nonce, $tag, self::associated($queue, $id, $part));
        return is_string($opened) ? $opened : null;
    }

    /** Returns the data that is authenticated with a text: each part after its length. */
    private static function associated(string ...$parts): string
    {
        return implode('', array_map(static fn (string $part): string => pack('N', strlen($part)) . $part, ['dq1', ...$parts]));
    }
}
