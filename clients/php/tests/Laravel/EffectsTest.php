<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Dq\Tests\Server;

/** The changes that a job makes in the same step as its end. */
final class EffectsTest extends AppTestCase
{
    /** @dataProvider drivers */
    #[\PHPUnit\Framework\Attributes\DataProvider('drivers')]
    public function testTheEffectsOfAJobGoWithItsEndAndOnlyWithThat(string $driver): void
    {
        $this->start($driver);
        foreach (['returns', 'fails', 'is given up', 'is released', 'is refused', 'is lost'] as $how) {
            $this->queue->push(new Pays($how));
        }
        $this->work('default', ['maxTries' => 1]);
        // The prefix of the connection is that of its other commands, too.
        $this->assertSame('5', Server::redis(4)->get('app_paid'));
        $errors = array_map(fn (\Throwable $error): string => explode(' ', $error->getMessage())[0], $this->app->reported);
        $this->assertSame(['no', 'CONDITION'], $errors);
        $this->assertSame([1, 0], [$this->queue->delayedSize(), $this->queue->pendingSize()]);
    }
}
