<?php

declare(strict_types=1);

namespace Dq;

/** A client that can run commands on one connection, one right after the other, as `Durable` needs it. */
interface PipelineClient extends Client
{
    /**
     * Sends all commands at once to the server that has the key, and returns the reply to each, or a ServerError in its
     * place. Nothing is repeated.
     *
     * @param list<list<string|int>> $commands
     * @return list<mixed>
     * @throws ConnectionError if the connection could not be made or is lost: whether the commands were run is unknown
     */
    public function pipeline(string $key, array $commands): array;
}
