<?php

declare(strict_types=1);

namespace Dq\Laravel;

/** The failure of a job without being run: it has killed too many workers. */
final class LostWorkersException extends \RuntimeException
{
}
