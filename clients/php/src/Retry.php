<?php

declare(strict_types=1);

namespace Dq;

/** Thrown by a handler to fail and be tried again after `delay` ms. Null means the backoff of the queue. */
class Retry extends \RuntimeException
{
    public function __construct(string $error = '', public readonly int|\DateInterval|null $delay = null)
    {
        parent::__construct($error);
    }
}
