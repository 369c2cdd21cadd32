<?php

declare(strict_types=1);

namespace Dq\Outbox;

use Dq\Queue;
use Dq\Words;

/** A row of the table. docs/outbox.md has its columns, which are the same in all languages. */
final class Row
{
    /**
     * @param ?int $seq the order of the rows; null for one that is to be inserted
     * @param string $line the hash of what is sent in order: of the group, or of the id if there is none
     * @param string $message JSON: the payload as text or in base64, and the other words of DQ.SEND
     */
    public function __construct(
        public readonly ?int $seq,
        public readonly string $messageId,
        public readonly string $queue,
        public readonly string $line,
        public readonly string $message,
    ) {
    }

    /** @param array<string, mixed> $options options of DQ.SEND. A delay counts from now */
    public static function of(string $queue, string $payload, array $options): self
    {
        $id = (string) ($options['id'] ?? Queue::uuid());
        unset($options['id']);
        if (isset($options['delay'])) {
            $delay = Words::word($options['delay']);
            $options['at'] = (int) (microtime(true) * 1000) + ($options['delay'] instanceof \DateInterval ? $delay : (int) $delay);
            unset($options['delay']);
        }
        $line = isset($options['group']) ? "$queue\0group\0{$options['group']}" : "$queue\0id\0$id";
        $message = ['payload' => self::written($payload), 'words' => array_map(self::written(...), Words::of(['id' => $id] + $options))];
        return new self(null, $id, $queue, substr(hash('sha256', $line), 0, 32), json_encode($message, JSON_THROW_ON_ERROR));
    }

    /** @param array<string, mixed> $found a row as a database gives it */
    public static function from(array $found): self
    {
        return new self((int) $found['seq'], $found['message_id'], $found['queue'], $found['line'], $found['message']);
    }

    /** @return array<string, string> the columns of a new row */
    public function columns(): array
    {
        return ['message_id' => $this->messageId, 'queue' => $this->queue, 'line' => $this->line, 'message' => $this->message];
    }

    /** @return list<string> the DQ.SEND */
    public function command(): array
    {
        $written = json_decode($this->message, true, 512, JSON_THROW_ON_ERROR);
        return ['DQ.SEND', $this->queue, ...array_map(self::read(...), [$written['payload'], ...$written['words']])];
    }

    /** Returns a word for JSON, which has no bytes: text, or an object with the bytes in base64. */
    private static function written(string|int $word): string|array
    {
        $word = (string) $word;
        return preg_match('//u', $word) === 1 ? $word : ['base64' => base64_encode($word)];
    }

    private static function read(string|int|array $written): string
    {
        return is_array($written) ? base64_decode($written['base64']) : (string) $written;
    }
}
