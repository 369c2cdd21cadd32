<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/' . str_replace('\\', '/', substr($class, strlen('Dq\\Tests\\'))) . '.php';
    if (str_starts_with($class, 'Dq\\Tests\\') && is_file($file)) {
        require $file;
    }
});
// Composer's packages, or those of Debian.
if (is_file(__DIR__ . '/../vendor/autoload.php')) {
    require __DIR__ . '/../vendor/autoload.php';
} else {
    foreach (['Predis', 'Illuminate/Queue', 'Illuminate/Redis', 'Illuminate/Events', 'Illuminate/Bus', 'Illuminate/Database', 'Illuminate/Pipeline', 'Doctrine/DBAL', 'Symfony/Component/Messenger', 'Symfony/Component/EventDispatcher', 'Mockery'] as $package) {
        if (is_file("/usr/share/php/$package/autoload.php")) {
            require_once "/usr/share/php/$package/autoload.php";
        }
    }
}
