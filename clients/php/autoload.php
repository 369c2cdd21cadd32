<?php

/*
 * Loads the classes of this package where Composer is not used: require __DIR__ . '/clients/php/autoload.php';
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Dq\\')) {
        $file = __DIR__ . '/src/' . str_replace('\\', '/', substr($class, 3)) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
