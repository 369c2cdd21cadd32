<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Outbox\Row;
use PHPUnit\Framework\TestCase;

final class OutboxRowTest extends TestCase
{
    public function testARowIsThatOfAllLanguages(): void
    {
        $cases = json_decode((string) file_get_contents(__DIR__ . '/../../../../tests/conformance/outbox.json'), true)['rows'];
        $raw = static fn (string|array $word): string => is_array($word) ? base64_decode($word['base64']) : $word;
        foreach ($cases as $case) {
            $row = Row::of($case['queue'], $raw($case['payload']), ['id' => $case['id']] + $case['options']);
            $this->assertSame([$case['id'], $case['queue'], $case['line']], [$row->messageId, $row->queue, $row->line]);
            $this->assertSame($case['message'], json_decode($row->message, true));
            $this->assertSame(array_map($raw, $case['command']), $row->command());
        }
    }
}
