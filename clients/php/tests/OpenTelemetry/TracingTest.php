<?php

declare(strict_types=1);

namespace Dq\Tests\OpenTelemetry;

use Dq\Message;
use Dq\OpenTelemetry\Tracing;
use Dq\Park;
use Dq\Queue;
use Dq\Secrets;
use Dq\Tests\Server;
use Dq\UrlClient;
use Dq\Worker;
use OpenTelemetry\API\Trace\Propagation\TraceContextPropagator;
use OpenTelemetry\API\Trace\Span;
use OpenTelemetry\API\Trace\SpanKind;
use OpenTelemetry\SDK\Metrics\MeterProvider;
use OpenTelemetry\SDK\Metrics\MetricExporter\InMemoryExporter as Figures;
use OpenTelemetry\SDK\Metrics\MetricReader\ExportingReader;
use OpenTelemetry\SDK\Trace\SpanExporter\InMemoryExporter;
use OpenTelemetry\SDK\Trace\SpanProcessor\SimpleSpanProcessor;
use OpenTelemetry\SDK\Trace\TracerProvider;
use PHPUnit\Framework\TestCase;

/** Traces and metrics, with the exporters of OpenTelemetry's SDK, which is no package of Debian. */
final class TracingTest extends TestCase
{
    public function testASendAndItsAttemptsAreInTracesAndMetrics(): void
    {
        Server::redis()->flushAll();
        $exporter = new InMemoryExporter();
        $figures = new Figures();
        $reader = new ExportingReader($figures);
        $meters = MeterProvider::builder()->addReader($reader)->build();
        $tracing = new Tracing(new TracerProvider(new SimpleSpanProcessor($exporter)), $meters, TraceContextPropagator::getInstance());
        $queue = new Queue(new UrlClient(Server::url()), 'mails', middleware: [$tracing, new Secrets(['k' => str_repeat('k', 32)])]);
        $queue->ensure(['retries' => 3, 'backoff' => ['FIXED', 1]]);
        $id = $queue->send('hello', ['type' => 'mail', 'group' => 'ann', 'headers' => ['own' => 'x']]);
        $seen = [];
        $handler = static function (Message $message) use (&$seen): void {
            $seen[] = [$message->payload, $message->headers()['own'], Span::getCurrent()->getContext()->isValid()];
            match ($message->attempt) {
                1 => throw new \DomainException('not yet'),
                2 => throw new Park(for: 1),
                default => null,
            };
        };
        (new Worker($queue, $handler, block: 50, maxMessages: 3))->run();
        $this->assertSame(array_fill(0, 3, ['hello', 'x', true]), $seen);
        [$send, $first, $second, $third] = $exporter->getSpans();
        $this->assertSame(['send mails', SpanKind::KIND_PRODUCER], [$send->getName(), $send->getKind()]);
        $this->assertSame(['process mails', SpanKind::KIND_CONSUMER], [$first->getName(), $first->getKind()]);
        $about = static fn (string $operation): array => [
            'messaging.system' => 'dq', 'messaging.destination.name' => 'mails', 'messaging.operation.name' => $operation,
            'messaging.operation.type' => $operation, 'messaging.message.id' => $id, 'dq.type' => 'mail', 'dq.group' => 'ann',
        ];
        $this->assertEqualsCanonicalizing($about('send'), $send->getAttributes()->toArray());
        $this->assertEqualsCanonicalizing($about('process') + ['dq.attempt' => 1, 'error.type' => 'DomainException'], $first->getAttributes()->toArray());
        $this->assertSame(['Error', 'not yet'], [$first->getStatus()->getCode(), $first->getStatus()->getDescription()]);
        $this->assertSame([$send->getTraceId(), $send->getSpanId()], [$first->getTraceId(), $first->getParentSpanId()]);
        foreach ([$second, $third] as $later) {
            $this->assertSame($send->getSpanId(), $later->getLinks()[0]->getSpanContext()->getSpanId());
            $this->assertSame([false, 'Unset'], [$later->getParentContext()->isValid(), $later->getStatus()->getCode()]);
            $this->assertNotSame($send->getTraceId(), $later->getTraceId());
        }

        $reader->collect();
        $counts = [];
        foreach ($figures->collect() as $metric) {
            foreach ($metric->data->dataPoints as $point) {
                $counts[$metric->name . ' ' . $point->attributes->get('error.type')] = $point->value ?? $point->count;
            }
        }
        ksort($counts);
        $this->assertSame([
            'messaging.client.consumed.messages ' => 3,
            'messaging.client.operation.duration ' => 1,
            'messaging.client.sent.messages ' => 1,
            'messaging.process.duration ' => 2,
            'messaging.process.duration DomainException' => 1,
        ], $counts);
    }
}
