<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Illuminate\Queue\InteractsWithQueue;

/** A job that writes into a static list. */
class Note
{
    use InteractsWithQueue;

    /** @var list<string> */
    public static array $seen = [];

    public ?string $messageGroup = null;
    public ?int $delay = null;

    public function __construct(public string $name)
    {
    }

    public function handle(): void
    {
        self::$seen[] = "$this->name {$this->job->attempts()} {$this->job->getQueue()}";
    }
}
