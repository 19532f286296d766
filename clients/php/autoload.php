<?php

declare(strict_types=1);

// Loads the classes of this package where Composer is not used: require this file once.
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'MerchantWallet\\')) {
        $file = __DIR__ . '/src/' . strtr(substr($class, strlen('MerchantWallet\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
