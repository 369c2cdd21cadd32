<?php

declare(strict_types=1);

namespace Dq;

/**
 * The deliveries that the driver of a framework has given out and that are not settled. If their process ends in the middle
 * of a handler, by `exit` or a fatal error, they fail at once and with the reason, instead of when their leases are over.
 */
final class Held
{
    /** A process that ends repeats a command for this many ms if the server does not answer. */
    private const LAST_WORDS = 1_500;

    /** @var array<string, array{string, int, bool}> key, receipt, and whether a handler has begun */
    private array $held = [];
    private ?\Closure $unwatch = null;

    /** @param \Closure(): Client $connect makes a connection. The process may end in the middle of a reply to another one */
    public function __construct(private \Closure $connect)
    {
    }

    public function add(string $key, int $receipt, bool $isBegun = true): void
    {
        $this->held["$receipt $key"] = [$key, $receipt, $isBegun];
        $this->unwatch ??= ProcessEnd::watch($this->leave(...));
    }

    public function remove(string $key, int $receipt): void
    {
        unset($this->held["$receipt $key"]);
        if ($this->held === [] && $this->unwatch !== null) {
            ($this->unwatch)();
            $this->unwatch = null;
        }
    }

    private function leave(string $how): void
    {
        $client = ($this->connect)();
        foreach ($this->held as [$key, $receipt, $isBegun]) {
            $words = ['DQ.NACK', $key, $receipt, ...Words::of($isBegun ? Outcome::failed($how) : ['silent' => true])];
            Retrying::call($client, $key, $words, self::LAST_WORDS);
        }
    }
}
