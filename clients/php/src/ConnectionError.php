<?php

declare(strict_types=1);

namespace Dq;

/** There was no reply. Whether the command was run is unknown. */
final class ConnectionError extends Error
{
    public function isTransient(): bool
    {
        return true;
    }
}
