<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Middleware;
use Doctrine\DBAL\Driver\Middleware\AbstractConnectionMiddleware;
use Doctrine\DBAL\Driver\Middleware\AbstractDriverMiddleware;

/** A middleware of Doctrine's connections that makes calls after the next commit, which Doctrine itself has no event for. */
final class AfterCommit implements Middleware
{
    /** @var list<\Closure> */
    private array $calls = [];

    public function add(\Closure $call): void
    {
        $this->calls[] = $call;
    }

    /** Makes the calls, or forgets them after a rollback. */
    public function end(bool $isCommitted): void
    {
        [$calls, $this->calls] = [$this->calls, []];
        foreach ($isCommitted ? $calls : [] as $call) {
            $call();
        }
    }

    public function wrap(Driver $driver): Driver
    {
        return new class ($driver, $this) extends AbstractDriverMiddleware {
            public function __construct(Driver $driver, private AfterCommit $commits)
            {
                parent::__construct($driver);
            }

            public function connect(array $params): Connection
            {
                return new class (parent::connect($params), $this->commits) extends AbstractConnectionMiddleware {
                    public function __construct(Connection $connection, private AfterCommit $commits)
                    {
                        parent::__construct($connection);
                    }

                    public function commit(): void
                    {
                        parent::commit();
                        $this->commits->end(true);
                    }

                    public function rollBack(): void
                    {
                        parent::rollBack();
                        $this->commits->end(false);
                    }
                };
            }
        };
    }
}
