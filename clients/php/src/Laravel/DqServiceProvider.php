<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Error;
use Illuminate\Queue\Events\Looping;
use Illuminate\Queue\Events\WorkerStopping;
use Illuminate\Queue\QueueManager;
use Illuminate\Support\ServiceProvider;

/** Registers the queue driver `dq`. */
class DqServiceProvider extends ServiceProvider
{
    /** The queue connection of the worker in this process. */
    private ?DqQueue $working = null;

    public function register(): void
    {
        $this->callAfterResolving('queue', $this->addDriver(...));
    }

    protected function addDriver(QueueManager $manager): void
    {
        $database = fn (?string $name): mixed => $this->app['db']->connection($name);
        $manager->addConnector('dq', fn (): DqConnector => new DqConnector($this->app['redis'], $database));
    }

    public function boot(): void
    {
        if (method_exists($this->app, 'runningInConsole') && $this->app->runningInConsole()) {
            $this->commands([OutboxCommand::class]);
            $this->publishes([__DIR__ . '/migrations' => $this->app->databasePath('migrations')], 'dq-outbox');
        }
        // A manager that was bound as an object, after `register`, is never resolved.
        if ($this->app->resolved('queue')) {
            $this->addDriver($this->app['queue']);
        }
        // A worker asks its queues (--queue=high,low) one by one. Before each round it tells which ones they are, so that
        // the first question can wait on all of them at once.
        if ($this->app->bound('events')) {
            $this->app['events']->listen(Looping::class, function (Looping $event): void {
                $queue = $this->app['queue']->connection($event->connectionName);
                if ($queue instanceof DqQueue) {
                    $this->working = $queue;
                    try {
                        $queue->aboutToPop((string) $event->queue);
                    } catch (Error) {
                        // Laravel catches only exceptions of `pop`. An ack that has not got through goes out with the
                        // pop.
                    }
                }
            });
            $this->app['events']->listen(WorkerStopping::class, function (): void {
                try {
                    $this->working?->stops();
                } catch (Error) {
                    // No error may keep a worker from its end. The job comes back when its lease is over.
                }
            });
        }
    }
}
