<?php

declare(strict_types=1);

namespace Dq;

/** Thrown by a handler if the message can never succeed. It is dead at once, with the reason `rejected`. */
class Reject extends \RuntimeException
{
}
