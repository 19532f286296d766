<?php

declare(strict_types=1);

require_once __DIR__ . '/../autoload.php';

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/' . substr($class, strlen('MerchantWallet\\Tests\\')) . '.php';
    if (str_starts_with($class, 'MerchantWallet\\Tests\\') && is_file($file)) {
        require $file;
    }
});
