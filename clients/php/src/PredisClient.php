<?php

declare(strict_types=1);

namespace Dq;

use Predis\ClientInterface;
use Predis\Command\RawCommand;
use Predis\CommunicationException;
use Predis\Connection\NodeConnectionInterface;
use Predis\Response\ErrorInterface;
use Predis\Response\ServerException;

/** The library Predis, with a single server or with a Sentinel. Its own cluster of connections knows only Redis' commands. */
final class PredisClient implements PipelineClient, PrefixingClient
{
    /** @param ?\Closure(RawCommand): mixed $runRaw runs a command in another way than `executeCommand` of the client */
    public function __construct(private ClientInterface $redis, private ?\Closure $runRaw = null)
    {
    }

    public function call(string $key, array $words, bool $waits = false): mixed
    {
        return self::undisturbed(fn (): mixed => $this->run($words));
    }

    public function pipeline(string $key, array $commands): array
    {
        return self::undisturbed(fn (): array => $this->runPipeline($commands));
    }

    /** @param list<list<string|int>> $commands */
    private function runPipeline(array $commands): array
    {
        $raw = array_map(static fn (array $words): RawCommand => RawCommand::create(...array_map('strval', $words)), $commands);
        $connection = $this->redis->getConnection();
        if (!$connection instanceof NodeConnectionInterface) {
            // Behind Sentinels. The client finds out who is the primary, and asks again after a failover.
            $this->run(['DQ.LEN', $commands[0][1]]);
            $connection = $connection->getConnectionByCommand($raw[0]);
        }
        try {
            foreach ($raw as $command) {
                $connection->writeRequest($command);
            }
            return array_map(static function (RawCommand $command) use ($connection): mixed {
                $reply = $connection->readResponse($command);
                return $reply instanceof ErrorInterface ? new ServerError($reply->getMessage()) : $reply;
            }, $raw);
        } catch (CommunicationException | \RuntimeException $thrown) {
            $connection->disconnect();
            throw new ConnectionError($thrown->getMessage(), 0, $thrown);
        }
    }

    /**
     * Runs a command while signals are held, and keeps PHP's warnings about a broken connection from an application's
     * error handler. One that throws (Laravel's does) would end the command where Predis is about to make an exception of
     * it, and leave the dead connection in place.
     */
    private static function undisturbed(\Closure $command): mixed
    {
        $others = set_error_handler(static function (int $level, string $text, mixed ...$rest) use (&$others): mixed {
            $isOfAStream = preg_match('/^(fwrite|fread|fgets|stream_\w+)\(\)/', $text) === 1;
            return $isOfAStream ? true : ($others === null ? false : $others($level, $text, ...$rest));
        });
        $isHeld = Signals::hold();
        try {
            return $command();
        } finally {
            restore_error_handler();
            Signals::release($isHeld);
        }
    }

    private function run(array $words): mixed
    {
        $command = RawCommand::create(...array_map('strval', $words));
        try {
            $reply = $this->runRaw === null ? $this->redis->executeCommand($command) : ($this->runRaw)($command);
        } catch (ServerException $thrown) {
            throw new ServerError($thrown->getMessage(), 0, $thrown);
        } catch (CommunicationException $thrown) {
            throw new ConnectionError($thrown->getMessage(), 0, $thrown);
        } catch (\RuntimeException $thrown) {
            // Predis 3.0 throws an error if the server has closed the connection, and keeps the connection.
            $this->redis->disconnect();
            throw new ConnectionError($thrown->getMessage(), 0, $thrown);
        }
        if ($reply instanceof ErrorInterface) {
            throw new ServerError($reply->getMessage());
        }
        return $reply instanceof \Predis\Response\Status ? (string) $reply : $reply;
    }

    /** Waits no longer than this (seconds) for replies from now on, over the present connection. */
    public function limit(float $seconds): void
    {
        $connection = $this->redis->getConnection();
        $resource = $connection instanceof NodeConnectionInterface ? $connection->getResource() : null;
        if (is_object($resource)) {
            // Predis 3 has a stream of PSR-7 around it, which does not give it out.
            $resource = (fn (): mixed => $this->stream ?? null)->call($resource);
        }
        if (is_resource($resource)) {
            stream_set_timeout($resource, (int) $seconds, (int) (fmod($seconds, 1) * 1e6));
        }
    }

    public function prefixed(string $key): string
    {
        return ($this->redis->getOptions()->prefix?->getPrefix() ?? '') . $key;
    }

    public function readTimeout(): float
    {
        $connection = $this->redis->getConnection();
        $parameters = method_exists($connection, 'getParameters') ? $connection->getParameters() : null;
        return max(0.0, (float) ($parameters->read_write_timeout ?? ini_get('default_socket_timeout')));
    }
}
