<?php

declare(strict_types=1);

namespace Dq\OpenTelemetry;

use Dq\Context;
use Dq\Message;
use Dq\Middleware;
use Dq\Park;
use Dq\Sending;
use Dq\Snooze;
use OpenTelemetry\API\Globals;
use OpenTelemetry\API\Metrics\CounterInterface;
use OpenTelemetry\API\Metrics\HistogramInterface;
use OpenTelemetry\API\Metrics\MeterProviderInterface;
use OpenTelemetry\API\Trace\Span;
use OpenTelemetry\API\Trace\SpanInterface;
use OpenTelemetry\API\Trace\SpanKind;
use OpenTelemetry\API\Trace\StatusCode;
use OpenTelemetry\API\Trace\TracerInterface;
use OpenTelemetry\API\Trace\TracerProviderInterface;
use OpenTelemetry\Context\Context as Scope;
use OpenTelemetry\Context\ContextInterface;
use OpenTelemetry\Context\Propagation\TextMapPropagatorInterface;

/**
 * Traces and metrics by OpenTelemetry's API (open-telemetry/api), by the semantic conventions for messaging: `send mails`
 * (kind producer) around a send, and `process mails` (kind consumer) around a handler. The first attempt is a child of the
 * send, and later ones begin traces of their own that are linked to it. The header is that of the propagator: `traceparent`.
 *
 *     $queue = new Queue($client, 'mails', middleware: [new Tracing()]);
 */
final class Tracing implements Middleware
{
    private TracerInterface $tracer;
    private TextMapPropagatorInterface $propagator;
    private CounterInterface $sent;
    private CounterInterface $consumed;
    private HistogramInterface $sending;
    private HistogramInterface $processing;

    /** The providers and the propagator of the process are the default. */
    public function __construct(?TracerProviderInterface $tracers = null, ?MeterProviderInterface $meters = null, ?TextMapPropagatorInterface $propagator = null)
    {
        $this->tracer = ($tracers ?? Globals::tracerProvider())->getTracer('dq');
        $this->propagator = $propagator ?? Globals::propagator();
        $meter = ($meters ?? Globals::meterProvider())->getMeter('dq');
        $this->sent = $meter->createCounter('messaging.client.sent.messages', '{message}');
        $this->consumed = $meter->createCounter('messaging.client.consumed.messages', '{message}');
        $this->sending = $meter->createHistogram('messaging.client.operation.duration', 's');
        $this->processing = $meter->createHistogram('messaging.process.duration', 's');
    }

    public function send(Sending $sending, \Closure $next): ?string
    {
        $about = self::attributes('send', $sending->queue);
        $more = ['messaging.message.id' => $sending->id, 'dq.type' => $sending->options['type'] ?? null, 'dq.group' => $sending->options['group'] ?? null];
        $span = $this->tracer->spanBuilder("send {$sending->queue}")
            ->setSpanKind(SpanKind::KIND_PRODUCER)->setAttributes(array_filter($about + $more, is_scalar(...)))->startSpan();
        $run = function () use ($sending, $next): ?string {
            $this->propagator->inject($sending->headers);
            return $next();
        };
        return self::around($span, $span->storeInContext(Scope::getCurrent()), $run, function (float $seconds, array $error) use ($about): void {
            $this->sent->add(1, $about + $error);
            $this->sending->record($seconds, $about + $error);
        });
    }

    public function handle(Message $message, Context $context, \Closure $next): mixed
    {
        $about = self::attributes('process', $message->queue);
        $more = ['messaging.message.id' => $message->id, 'dq.attempt' => $message->attempt, 'dq.type' => $message->type(), 'dq.group' => $message->group()];
        $parent = $this->propagator->extract($message->headers());
        $sender = Span::fromContext($parent)->getContext();
        $builder = $this->tracer->spanBuilder("process {$message->queue}")
            ->setSpanKind(SpanKind::KIND_CONSUMER)->setAttributes(array_filter($about + $more, is_scalar(...)));
        if ($message->attempt > 1) {
            // Baggage and the like come with every attempt.
            $parent = Span::getInvalid()->storeInContext($parent);
            if ($sender->isValid()) {
                $builder->addLink($sender);
            }
        }
        $span = $builder->setParent($parent)->startSpan();
        return self::around($span, $span->storeInContext($parent), static fn (): mixed => $next($message), function (float $seconds, array $error) use ($about): void {
            $this->consumed->add(1, $about);
            $this->processing->record($seconds, $about + $error);
        });
    }

    /**
     * Runs what a span is about, and ends the span. A message that is given back without blame has not failed.
     *
     * @param \Closure(float, array<string, string>): void $measured
     */
    private static function around(SpanInterface $span, ContextInterface $context, \Closure $run, \Closure $measured): mixed
    {
        $scope = $context->activate();
        $began = hrtime(true);
        $error = [];
        try {
            return $run();
        } catch (\Throwable $thrown) {
            if (!$thrown instanceof Snooze && !$thrown instanceof Park) {
                $error = ['error.type' => $thrown::class];
                $span->recordException($thrown)->setStatus(StatusCode::STATUS_ERROR, $thrown->getMessage())->setAttributes($error);
            }
            throw $thrown;
        } finally {
            $measured((hrtime(true) - $began) / 1e9, $error);
            $span->end();
            $scope->detach();
        }
    }

    /** @return array<string, string> */
    private static function attributes(string $operation, string $queue): array
    {
        return [
            'messaging.system' => 'dq',
            'messaging.destination.name' => $queue,
            'messaging.operation.name' => $operation,
            'messaging.operation.type' => $operation,
        ];
    }
}
