<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * Stores each callback's body as a file of its own. The file's name comes from the eventId.
 *
 * After a power cut the newest file may be gone, because PHP can't sync a folder. Where that matters use a database.
 */
final class FileCallbackStore implements CallbackStore
{
    public function __construct(private readonly string $folder)
    {
        if (!is_dir($folder) && !@mkdir($folder, 0700, true) && !is_dir($folder)) {
            throw new \RuntimeException("can't make the folder $folder for callbacks");
        }
    }

    public function add(Callback $callback): bool
    {
        $path = $this->folder . '/' . hash('sha256', $callback->eventId) . '.json';
        $temporary = $path . '.' . bin2hex(random_bytes(8));
        try {
            $this->write($temporary, $callback->body);
            // A link appears whole or not at all, and only once.
            if (@link($temporary, $path)) {
                return true;
            }
            if (is_file($path)) {
                return false;
            }
            throw new \RuntimeException("can't store a callback in $this->folder");
        } finally {
            @unlink($temporary);
        }
    }

    private function write(string $path, string $body): void
    {
        $file = @fopen($path, 'x') ?: throw new \RuntimeException("can't write into $this->folder");
        try {
            if (fwrite($file, $body) !== strlen($body) || !fsync($file)) {
                throw new \RuntimeException("can't write $path");
            }
        } finally {
            fclose($file);
        }
    }
}
