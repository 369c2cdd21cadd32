<?php

declare(strict_types=1);

namespace Dq\Tests\Symfony;

/** A message. */
final class Text
{
    public function __construct(public string $text)
    {
    }
}
