<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * A strict JSON reader that keeps the text of numbers, because that text is what the service signed.
 *
 * `json_decode` makes floats of amounts and takes the last of two fields with one name. This reader refuses such a
 * body. Each string is still decoded by `json_decode`, which knows every escape.
 */
final class JsonReader
{
    private const MAX_DEPTH = 16;
    private const TOKEN = '~[ \t\n\r]*+(?:"(?:[^"\\\\\x00-\x1f]++|\\\\.)*+"'
        . '|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|[{}\[\]:,])~A';

    private int $at = 0;

    private function __construct(private readonly string $text)
    {
    }

    /**
     * @return mixed an array for an object, JsonList, JsonNumber, string, bool or null
     * @throws \JsonException if the text is not JSON, or names a field twice
     */
    public static function read(string $text): mixed
    {
        if (preg_match('//u', $text) !== 1) {
            throw new \JsonException('not valid UTF-8');
        }
        $reader = new self($text);
        $value = $reader->readValue($reader->nextToken(), 1);
        if (trim(substr($text, $reader->at), " \t\n\r") !== '') {
            throw new \JsonException("more text than one value at byte {$reader->at}");
        }
        return $value;
    }

    private function nextToken(): string
    {
        if (preg_match(self::TOKEN, $this->text, $found, 0, $this->at) !== 1) {
            throw new \JsonException("not JSON at byte {$this->at}");
        }
        $this->at += strlen($found[0]);
        return ltrim($found[0], " \t\n\r");
    }

    private function readValue(string $token, int $depth): mixed
    {
        if ($depth > self::MAX_DEPTH) {
            throw new \JsonException('nested too deeply');
        }
        return match ($token[0]) {
            '"' => json_decode($token, flags: JSON_THROW_ON_ERROR),
            '{' => $this->readObject($depth),
            '[' => $this->readList($depth),
            't' => true,
            'f' => false,
            'n' => null,
            '}', ']', ':', ',' => throw new \JsonException("a value is missing before byte {$this->at}"),
            default => new JsonNumber($token),
        };
    }

    /** @return array<array-key, mixed> */
    private function readObject(int $depth): array
    {
        $values = [];
        $token = $this->nextToken();
        while ($token !== '}') {
            if ($token[0] !== '"') {
                throw new \JsonException("a name is missing before byte {$this->at}");
            }
            $name = json_decode($token, flags: JSON_THROW_ON_ERROR);
            if (array_key_exists($name, $values)) {
                throw new DuplicateField("the field $name stands there twice", $depth);
            }
            if ($this->nextToken() !== ':') {
                throw new \JsonException("a colon is missing before byte {$this->at}");
            }
            $values[$name] = $this->readValue($this->nextToken(), $depth + 1);
            $token = $this->nextAfterComma('}');
        }
        return $values;
    }

    private function readList(int $depth): JsonList
    {
        $items = [];
        $token = $this->nextToken();
        while ($token !== ']') {
            $items[] = $this->readValue($token, $depth + 1);
            $token = $this->nextAfterComma(']');
        }
        return new JsonList($items);
    }

    /** The token that begins the next member, or `$end`. */
    private function nextAfterComma(string $end): string
    {
        $token = $this->nextToken();
        if ($token === $end) {
            return $token;
        }
        if ($token !== ',') {
            throw new \JsonException("a comma is missing before byte {$this->at}");
        }
        $token = $this->nextToken();
        if ($token === $end) {
            throw new \JsonException("a value is missing before byte {$this->at}");
        }
        return $token;
    }
}
