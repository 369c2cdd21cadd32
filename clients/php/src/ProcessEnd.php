<?php

declare(strict_types=1);

namespace Dq;

/**
 * Reports that the process ends in the middle of a job: by `exit`, by a fatal error, or because no memory or time is
 * left. PHP throws nothing then and runs no `finally`, but it calls its shutdown functions. Nothing tells of a SIGKILL.
 */
final class ProcessEnd
{
    private const FATAL = E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_RECOVERABLE_ERROR | E_USER_ERROR | E_PARSE;

    /** @var array<int, array{int, \Closure(string): void}> process id and what is to be told */
    private static array $watched = [];
    private static int $count = 0;
    /** Memory for the last steps of a process that has used up its own. */
    private static ?string $spare = null;

    /**
     * Calls this with the reason if the process ends before the function that is returned is called.
     *
     * @param \Closure(string): void $told
     * @return \Closure(): void
     */
    public static function watch(\Closure $told): \Closure
    {
        if (self::$spare === null) {
            self::$spare = str_repeat(' ', 64 * 1024);
            register_shutdown_function(self::tell(...));
        }
        $number = self::$count++;
        self::$watched[$number] = [getmypid(), $told];
        return static function () use ($number): void {
            unset(self::$watched[$number]);
        };
    }

    private static function tell(): void
    {
        self::$spare = null;
        ini_set('memory_limit', '-1');
        set_time_limit(0);
        $error = error_get_last();
        $how = $error !== null && ($error['type'] & self::FATAL) !== 0
            ? "fatal error: {$error['message']} in {$error['file']}:{$error['line']}"
            : 'the process was ended (exit)';
        foreach (self::$watched as [$process, $told]) {
            // A child process that a handler has made ends, too, and reports nothing.
            if ($process === getmypid()) {
                try {
                    $told($how);
                } catch (\Throwable) {
                    // The messages that it had come back when their leases are over.
                }
            }
        }
    }
}
