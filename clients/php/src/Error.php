<?php

declare(strict_types=1);

namespace Dq;

/** The base of all errors of this package. */
abstract class Error extends \RuntimeException
{
    /** Returns whether another try can help: after a lost connection, while a server loads, during a failover. */
    abstract public function isTransient(): bool;
}
