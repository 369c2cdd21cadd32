<?php

/*
 * The parts of Hyperf's async-queue 3.1 that the driver uses, by their signatures. Debian has no package of it, and
 * Swoole is not there either.
 */

namespace Psr\Container {
    if (!interface_exists(ContainerInterface::class)) {
        interface ContainerInterface
        {
            public function get(string $id);

            public function has(string $id): bool;
        }
    }
}

namespace Hyperf\Redis {
    class RedisFactory
    {
        public function __construct(private \Redis $redis)
        {
        }

        public function get(string $pool): \Redis
        {
            return $this->redis;
        }
    }
}

namespace Hyperf\AsyncQueue {
    interface JobInterface
    {
        public function handle();

        public function getMaxAttempts(): int;
    }

    interface MessageInterface
    {
        public function job(): JobInterface;

        public function attempts(): bool;

        public function getAttempts(): int;
    }

    class JobMessage implements MessageInterface
    {
        protected int $attempts = 0;

        public function __construct(protected JobInterface $job)
        {
        }

        public function job(): JobInterface
        {
            return $this->job;
        }

        public function attempts(): bool
        {
            return $this->job->getMaxAttempts() > $this->attempts++;
        }

        public function getAttempts(): int
        {
            return $this->attempts;
        }
    }
}

namespace Hyperf\AsyncQueue\Driver {
    use Hyperf\AsyncQueue\JobInterface;
    use Hyperf\AsyncQueue\MessageInterface;
    use Psr\Container\ContainerInterface;

    interface DriverInterface
    {
        public function push(JobInterface $job, int $delay = 0): bool;

        public function delete(JobInterface $job): bool;

        public function pop(): array;

        public function ack($data): bool;

        public function fail($data): bool;

        public function reload(?string $queue = null): int;

        public function flush(?string $queue = null): bool;

        public function info(): array;
    }

    abstract class Driver implements DriverInterface
    {
        protected object $packer;

        public function __construct(protected ContainerInterface $container, protected array $config)
        {
            $this->packer = new class () {
                public function pack($data): string
                {
                    return serialize($data);
                }

                public function unpack(string $data)
                {
                    return @unserialize($data);
                }
            };
        }

        /** The inside of consume(): the handling of one message. */
        public function one(): ?string
        {
            [$data, $message] = $this->pop();
            if ($data === false) {
                return null;
            }
            try {
                $message->job()->handle();
                $this->ack($data);
                return 'acked';
            } catch (\Throwable) {
                if ($message->attempts() && $this->remove($data)) {
                    $this->retry($message);
                    return 'retried';
                }
                $this->fail($data);
                return 'failed';
            }
        }

        abstract protected function retry(MessageInterface $message): bool;

        abstract protected function remove(mixed $data): bool;
    }
}
