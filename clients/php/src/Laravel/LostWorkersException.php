<?php

declare(strict_types=1);

namespace Dq\Laravel;

/** Why a job has failed without being run: it has killed too many workers. */
final class LostWorkersException extends \RuntimeException
{
}
