<?php

declare(strict_types=1);

namespace Dq;

/** A connection to a Redis server, as far as a queue needs one. */
interface Client
{
    /**
     * Runs one command and returns its reply. Nil is null, also inside of arrays.
     *
     * @param string $key the key that says which node of a cluster runs the command
     * @param list<string|int> $words the command and its arguments
     * @param bool $waits whether the server may hold the reply back (BLOCK, DQ.WAIT)
     * @throws ServerError if the server replied with an error: nothing has changed
     * @throws ConnectionError if the connection could not be made or is lost: whether the command was run is unknown
     */
    public function call(string $key, array $words, bool $waits = false): mixed;

    /** Returns for how many seconds this client waits for a reply. 0.0 means without end. */
    public function readTimeout(): float;
}
