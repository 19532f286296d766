<?php
// Drives the page's PHP code for callbacks: one question per line of standard input, one answer per line.
require __DIR__ . '/callback.php';

foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
    [$nowS, $secret, $id, $timestamp, $signatures, $body] = explode("\t", $line);
    echo is_callback($secret, $id, $timestamp, $signatures, $body, (int) $nowS) ? "true\n" : "false\n";
}
