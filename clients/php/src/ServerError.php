<?php

declare(strict_types=1);

namespace Dq;

/** The server replied with an error. The command has changed nothing. */
final class ServerError extends Error
{
    /**
     * A primary that becomes a replica replies with UNBLOCKED to the clients that wait on it. The last three are those of a
     * server that refuses commands for a while: its disk is full, its replicas are away, a script takes long.
     */
    private const TRANSIENT = [
        'LOADING', 'READONLY', 'MASTERDOWN', 'UNBLOCKED', 'CLUSTERDOWN', 'TRYAGAIN', 'MISCONF', 'NOREPLICAS', 'BUSY',
    ];

    /** Returns the first word of the reply, for example ERR, WRONGTYPE or QUEUEFULL. */
    public function kind(): string
    {
        return strtok($this->getMessage(), ' ') ?: '';
    }

    public function isTransient(): bool
    {
        return in_array($this->kind(), self::TRANSIENT, true);
    }

    /**
     * Returns whether a text is an error reply, which begins with a word in upper case. So does what phpredis says of a
     * connection that it cannot make anew: "SELECT failed while reconnecting".
     */
    public static function isReply(string $text): bool
    {
        return preg_match('/^[A-Z][A-Z0-9]* /', $text) === 1 && !str_contains($text, 'while reconnecting');
    }
}
