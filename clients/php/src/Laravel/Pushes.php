<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Queue;
use Dq\Words;
use Illuminate\Support\Str;

use function strlen;

/** How jobs get into a queue, by a command or by the outbox. */
trait Pushes
{
    public function push($job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, null);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, $delay);
    }

    /**
     * Jobs without a delay or a group of their own are sent as one command: all of them or none.
     *
     * @param array $jobs
     */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $collected = [];
        $collecting = true;
        foreach ((array) $jobs as $job) {
            if ($this->outbox !== null || $this->secrets !== null || isset($job->delay) || $this->groupOf($job) !== null) {
                $this->enqueue($job, $data, $queue, $job->delay ?? null);
                continue;
            }
            $send = function ($payload, $queue) use (&$collected, &$collecting) {
                if (!$collecting) {
                    return $this->pushRaw($payload, $queue); // a job that waited for its transaction
                }
                $collected[] = $payload;
                return json_decode($payload, true)['id'] ?? null;
            };
            $this->enqueueUsing($job, $this->createPayload($job, $this->getQueue($queue), $data), $queue, null, $send);
        }
        $collecting = false;
        if ($collected !== []) {
            $this->open($queue)->sendMany($collected, self::RETRIES);
        }
    }

    /**
     * @param string $payload
     * @param array<string, mixed> $options options of DQ.SEND, such as group and priority
     */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $decoded = json_decode($payload, true);
        $type = $decoded['displayName'] ?? null;
        $fits = is_string($type) && $type !== '' && strlen($type) <= self::NAME_LENGTH;
        // Neither the job's id nor its uuid is the message's: a job that is retried has the same again.
        $options += self::RETRIES + ['type' => $fits ? $type : null];
        $outbox = $this->outbox();
        $key = $this->client()->prefixed($this->getQueue($queue));
        if ($this->secrets !== null) {
            $options['id'] ??= Queue::uuid();
            [$payload, $options['headers']] = $this->secrets->seal($key, (string) $options['id'], $payload, $options['headers'] ?? []);
        }
        $id = $outbox === null
            ? $this->open($queue)->do('SEND', $payload, ...Words::of($options))
            : $outbox->send($key, $payload, $options);
        return $decoded['id'] ?? $id;
    }

    private function enqueue($job, $data, $queue, $delay)
    {
        $options = $this->due($delay) + ['group' => $this->groupOf($job)];
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $this->getQueue($queue), $data, $delay),
            $queue,
            $delay,
            fn ($payload, $queue) => $this->pushRaw($payload, $queue, $options),
        );
    }

    protected function createPayloadArray($job, $queue, $data = '')
    {
        return array_merge(parent::createPayloadArray($job, $queue, $data), ['id' => Str::random(32), 'attempts' => 0]);
    }
}
