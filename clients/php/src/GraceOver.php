<?php

declare(strict_types=1);

namespace Dq;

/**
 * Thrown into a handler when its worker stops and `grace` is over: its message is given back, and no attempt is counted. A
 * handler that catches it gets it again a second later.
 */
final class GraceOver extends \RuntimeException
{
}
