<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Dq\Client;
use Dq\Coding;
use Dq\Effects;
use Dq\Error;
use Dq\Held;
use Dq\Message;
use Dq\Outbox\Outbox;
use Dq\Queue;
use Dq\Reject;
use Dq\Reply;
use Dq\Retrying;
use Dq\ServerError;
use Dq\UrlClient;
use Dq\Words;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\RedeliveryStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\ListableReceiverInterface;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Receiver\QueueReceiverInterface;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\SetupableTransportInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * A transport over a queue. The body of an envelope is the message's payload, its headers are the message's headers.
 *
 * Every method is one command, but `all`, which lists page by page. If the connection is lost, the command is repeated
 * over a new one until `patience` is over. An exception would end Symfony's worker, and if it came from an ack, the work
 * would be done again.
 */
final class DqTransport implements
    TransportInterface,
    QueueReceiverInterface,
    ListableReceiverInterface,
    MessageCountAwareInterface,
    SetupableTransportInterface,
    Keepalive
{
    /** Symfony itself counts retries, and sends a message anew for each of them. */
    public const RETRIES = ['retries' => -1];
    /** Options of a stamp that do not hold for a retry. */
    private const FIRST_TIME = ['id' => 1, 'replace' => 1, 'delay' => 1, 'at' => 1];
    /** The states of messages that wait, the next ones first. */
    private const WAITING = ['ready', 'blocked', 'retry', 'delayed'];
    private const TYPE_LENGTH = 1024;
    /** The most messages of one fetch: a FETCH with TOKEN takes no more. */
    private const MOST = 1000;

    private SerializerInterface $serializer;
    private Held $held;
    /** The message that this process has received last, and not settled. */
    private static ?DqReceivedStamp $running = null;

    /**
     * @param ?Outbox $outbox what messages go through on their way, if the option `outbox` is set
     * @param ?Coding $secrets encrypts messages
     */
    public function __construct(
        private Client $client,
        private Settings $settings,
        ?SerializerInterface $serializer = null,
        public readonly ?Outbox $outbox = null,
        private ?Coding $secrets = null,
    ) {
        $this->serializer = $serializer ?? new PhpSerializer();
        $this->held = new Held(static fn (): Client => $client instanceof UrlClient ? $client->fresh() : $client);
    }

    // ---- sending ----------------------------------------------------------------------------------------------------

    public function send(Envelope $envelope): Envelope
    {
        $encoded = $this->serializer->encode($envelope);
        $delay = $envelope->last(DelayStamp::class)?->getDelay() ?? 0;
        $type = $envelope->getMessage()::class;
        $stamped = $envelope->last(DqStamp::class)?->options ?? [];
        if ($envelope->last(RedeliveryStamp::class) !== null) {
            // Sent anew after a failure, while the id still is that of the message that failed.
            $stamped = array_diff_key($stamped, self::FIRST_TIME);
        }
        $options = $stamped + self::RETRIES + [
            'delay' => $delay > 0 ? $delay : null,
            'type' => strlen($type) <= self::TYPE_LENGTH ? $type : null,
            'headers' => $encoded['headers'] ?? [],
        ];
        $body = $encoded['body'];
        if ($this->secrets !== null) {
            $options['id'] ??= Queue::uuid();
            [$body, $options['headers']] = $this->secrets->seal($this->settings->queue, (string) $options['id'], $body, $options['headers']);
        }
        $id = $this->outbox === null
            ? $this->run(fn () => $this->queue()->send($body, $options))
            : $this->outbox->send($this->settings->queue, $body, $options);
        // Null means that the id of the stamp is taken, so this message was sent already.
        return self::stamped($envelope, new TransportMessageIdStamp($id ?? $options['id']));
    }

    // ---- receiving --------------------------------------------------------------------------------------------------

    /** @param int $fetchSize how many messages at most: `messenger:consume --fetch-size`, since Symfony 8.1 */
    public function get(int $fetchSize = 1): iterable
    {
        return $this->getFromQueues([$this->settings->queue], $fetchSize);
    }

    /** Takes messages from the first of these queues that has one; waits on all of them at once. */
    public function getFromQueues(array $queueNames, int $fetchSize = 1): iterable
    {
        $queues = array_values($queueNames);
        $words = count($queues) === 1
            ? ['DQ.FETCH', $queues[0], 'WITHMETA']
            : ['DQ.MFETCH', count($queues), ...$queues, 'WITHMETA'];
        $waits = $this->settings->block > 0;
        array_push($words, ...Words::of([
            'count' => $fetchSize > 1 ? min($fetchSize, self::MOST) : null,
            'lease' => $this->settings->lease,
            'consumer' => $this->settings->consumer,
            'block' => $waits ? $this->settings->block : null,
            // When the command is repeated, the server delivers the messages of a lost reply once more.
            'token' => bin2hex(random_bytes(8)),
        ]));
        $asked = microtime(true);
        $messages = $this->repeat(function () use ($queues, $words, $waits): array {
            $reply = $this->client->call($queues[0], $words, $waits);
            if (count($queues) === 1) {
                return Message::all($queues[0], $reply, true);
            }
            return $reply ? Message::all(...Reply::pair($reply), hasMeta: true) : [];
        });
        if ($messages !== []) {
            $touch = fn (): int => $this->queue($messages[0]->queue)->touch($this->settings->lease, $messages);
            Retrying::renewLate($asked, $this->settings->lease, $touch, $this->settings->patience);
        }
        $kept = array_values(array_filter($messages, fn (Message $message): bool => !$this->isGivenUp($message)));
        return count($kept) > 1 ? $this->oneByOne($kept) : array_map($this->received(...), $kept);
    }

    /**
     * Gives out messages one after the other. A consumer that stops gives back those that it has not begun, as if they had
     * not been delivered.
     *
     * @param list<Message> $messages
     */
    private function oneByOne(array $messages): \Generator
    {
        foreach ($messages as $message) {
            $this->held->add($message->queue, $message->receipt, false);
        }
        try {
            while ($messages !== []) {
                yield $this->received(array_shift($messages));
            }
        } finally {
            foreach ($messages as $message) {
                $this->held->remove($message->queue, $message->receipt);
                try {
                    $this->repeat(fn () => $this->queue($message->queue)->nack($message, ['silent' => true]));
                } catch (TransportException) {
                    // The message comes back when its lease ends.
                }
            }
        }
    }

    /**
     * Changes of Redis keys that are done together with the ack of the message that a handler is called for, all or none:
     * nothing if the handler fails, or if the lease of the message is over. If the server refuses them, the message stays in
     * the queue as a dead one. A handler that collects a batch asks for those of each message when it gets it.
     */
    public static function effects(): Effects
    {
        return self::$running?->effects ?? throw new LogicException('No message of dq is being handled: another transport has no effects.');
    }

    public function ack(Envelope $envelope): void
    {
        $this->finish($envelope, self::stampOf($envelope)->effects);
    }

    /** Symfony has sent the message anew by then, to be retried or to a failure transport, if it is to be kept. */
    public function reject(Envelope $envelope): void
    {
        $this->finish($envelope, new Effects());
    }

    /** Makes the lease end this many seconds from now; null: the redeliver_timeout. */
    public function keepalive(Envelope $envelope, ?int $seconds = null): void
    {
        $stamp = self::stampOf($envelope);
        if ($stamp->receipt !== null) {
            $lease = $seconds === null ? $this->settings->lease : max(1, $seconds * 1000);
            $this->repeat(fn () => $this->queue($stamp->queue)->touch($lease, $stamp->receipt));
        }
    }

    /**
     * Finishes a message. If its lease is over, another consumer has it, and nothing happens. The same is true of an ack
     * that is repeated after a lost reply. A message that was only looked at is cancelled.
     */
    private function finish(Envelope $envelope, Effects $effects): void
    {
        $stamp = self::stampOf($envelope);
        $queue = $this->queue($stamp->queue);
        self::$running = self::$running === $stamp ? null : self::$running;
        if ($stamp->receipt === null) {
            $this->repeat(fn () => $queue->cancel($stamp->id));
        } else {
            // The work is done, even if the command does not reach the server.
            $this->held->remove($stamp->queue, $stamp->receipt);
            $this->repeat(static function () use ($queue, $stamp, $effects): void {
                try {
                    $queue->ack($stamp->receipt, ['apply' => $effects]);
                } catch (ServerError $refusal) {
                    if ($effects->isEmpty() || $refusal->isTransient()) {
                        throw $refusal;
                    }
                    // Symfony gives no second chance to a message whose handler has returned.
                    $error = 'its effects were refused: ' . $refusal->getMessage();
                    $queue->nack($stamp->receipt, ['fatal' => true, 'error' => $error]);
                }
            });
        }
    }

    // ---- looking ----------------------------------------------------------------------------------------------------

    /** Returns the messages that wait, the next ones first and the delayed ones last. */
    public function all(?int $limit = null): iterable
    {
        try {
            foreach (self::WAITING as $state) {
                foreach ($this->queue()->list($state, ['count' => max(1, min($limit ?? 100, 100))]) as $record) {
                    if ($limit !== null && --$limit < 0) {
                        return;
                    }
                    yield $this->listed($record);
                }
            }
        } catch (Error $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }
    }

    public function find($id): ?Envelope
    {
        $record = $this->repeat(fn () => $this->queue()->get((string) $id));
        return $record === null || !in_array($record['status'], ['pending', 'running'], true) ? null : $this->listed($record);
    }

    /** Returns the number of messages that wait, delayed ones too, without those that consumers have. */
    public function getMessageCount(): int
    {
        $info = $this->repeat(function (): array {
            try {
                return $this->queue()->info();
            } catch (ServerError $error) {
                if (str_contains($error->getMessage(), 'no such queue')) {
                    return [];
                }
                throw $error;
            }
        });
        return array_sum(array_map(static fn (string $state): int => (int) ($info[$state] ?? 0), self::WAITING));
    }

    /** Makes the queue, if it is not there. Sending does it too. */
    public function setup(): void
    {
        $this->repeat(fn () => $this->queue()->do('CREATE', 'NX', ...Words::of(self::RETRIES)));
    }

    // ---- what it is made of -----------------------------------------------------------------------------------------

    /** Returns the queue, for commands that Symfony does not know: pause, groups, schedules. */
    public function queue(?string $key = null): Queue
    {
        return new Queue($this->client, $key ?? $this->settings->queue, $this->settings->patience);
    }

    /**
     * Gives up a message that kills its consumers: it stays in the queue as a dead one. Symfony sends a message anew for a
     * retry, so each delivery before this one has ended with its consumer.
     */
    private function isGivenUp(Message $message): bool
    {
        $lost = $message->attempt - 1;
        if ($this->settings->lostWorkers === 0 || $lost < $this->settings->lostWorkers) {
            return false;
        }
        $error = ['fatal' => true, 'error' => "given up: $lost consumers were lost with it"];
        $this->repeat(fn () => $this->queue($message->queue)->nack($message, $error));
        return true;
    }

    private function received(Message $message): Envelope
    {
        $this->held->add($message->queue, $message->receipt);
        try {
            $envelope = $this->decode($message->queue, $message->id, $message->payload, $message->headers());
        } catch (MessageDecodingFailedException $exception) {
            // The message stays in the queue as a dead message, and can be looked at and redriven.
            $error = ['fatal' => true, 'error' => substr('not decoded: ' . $exception->getMessage(), 0, 1000)];
            $this->repeat(fn () => $this->queue($message->queue)->nack($message, $error));
            $this->held->remove($message->queue, $message->receipt);
            throw $exception;
        }
        $stamp = new DqReceivedStamp($message->queue, $message->id, $message->receipt, $message->attempt);
        self::$running = $stamp;
        return self::stamped($envelope, $stamp, new TransportMessageIdStamp($message->id));
    }

    private function listed(array $record): Envelope
    {
        $stamp = new DqReceivedStamp($this->settings->queue, $record['id'], null, (int) $record['attempt']);
        $envelope = $this->decode($this->settings->queue, $record['id'], $record['payload'], $record['headers'] ?? []);
        return self::stamped($envelope, $stamp, new TransportMessageIdStamp($record['id']));
    }

    private function decode(string $queue, string $id, string $body, array $headers): Envelope
    {
        if ($this->secrets !== null) {
            try {
                [$body, $headers] = $this->secrets->open($queue, $id, $body, $headers);
            } catch (Reject $refused) {
                throw new MessageDecodingFailedException($refused->getMessage(), 0, $refused);
            }
        }
        try {
            $envelope = $this->serializer->decode(['body' => $body, 'headers' => $headers]);
            // An envelope of PHP's serialization may have any parts.
            $envelope->withoutAll(TransportMessageIdStamp::class)->getMessage();
            return $envelope;
        } catch (\Error $error) {
            throw new MessageDecodingFailedException($error->getMessage(), 0, $error);
        }
    }

    private static function stamped(Envelope $envelope, object ...$stamps): Envelope
    {
        // A message that is sent again still has the id that it had before.
        return $envelope->withoutAll(TransportMessageIdStamp::class)->with(...$stamps);
    }

    private static function stampOf(Envelope $envelope): DqReceivedStamp
    {
        return $envelope->last(DqReceivedStamp::class) ?? throw new LogicException('No DqReceivedStamp found on the Envelope.');
    }

    /** Only for a command that may be run twice. */
    private function repeat(\Closure $command): mixed
    {
        return $this->run(fn () => Retrying::run($command, $this->settings->patience));
    }

    private function run(\Closure $command): mixed
    {
        try {
            return $command();
        } catch (Error $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }
    }
}
