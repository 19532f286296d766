<?php
// Drives the page's PHP code: one question per line of standard input, one answer per line.
require __DIR__ . '/wallet.php';

foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
    [$what, $path, $secret, $rest] = explode("\t", $line, 4);
    if ($what === 'sign') {
        $fields = [];
        foreach (explode("\t", $rest) as $pair) {
            [$name, $value] = explode('=', $pair, 2);
            $fields[$name] = $value;
        }
        echo wallet_sign($secret, $path, $fields), "\n";
    } elseif ($what === 'callback') {
        [$nowMs, $raw] = explode("\t", $rest, 2);
        echo wallet_callback($secret, $raw, (int) $nowMs) === null ? "false\n" : "true\n";
    } else {
        echo wallet_verify($secret, $path, ...explode("\t", $rest, 2)) ? "true\n" : "false\n";
    }
}
