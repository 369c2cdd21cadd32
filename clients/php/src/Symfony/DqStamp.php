<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Symfony\Component\Messenger\Stamp\StampInterface;

/**
 * Options of DQ.SEND for a message, as `Dq\Words` reads them:
 *
 *     $bus->dispatch($message, [new DqStamp(['group' => "order-$id", 'priority' => -1])]);
 *
 * A retry has them too, but not `id`, `replace`, `delay` and `at`.
 */
final class DqStamp implements StampInterface
{
    /** @param array<string, mixed> $options */
    public function __construct(public readonly array $options)
    {
    }
}
