<?php

declare(strict_types=1);

namespace Dq;

/** A client that puts a prefix before the keys of its own commands. Raw commands have none. */
interface PrefixingClient extends Client
{
    /** Returns a key as the client's own commands would write it. */
    public function prefixed(string $key): string;
}
