<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * The fields of an answer's `data` or of a callback: names and texts, null where the service sent null.
 *
 * The reading functions check what they read. Amounts stay decimal texts: a float would lose cents.
 */
final class Fields
{
    private const NAME = '/\A[A-Za-z0-9_]{1,64}\z/';
    private const CONTROL = '/[\x{00}-\x{1f}\x{7f}-\x{9f}]/u';
    /** In MD5's text such a value could be read as another field. */
    private const HIDDEN = '/&(?:appKey|eventId|nonceStr|timestamp)=/';

    /** @param array<array-key, ?string> $texts */
    private function __construct(public readonly array $texts)
    {
    }

    /**
     * The fields of a JSON object.
     *
     * @throws \UnexpectedValueException if a name, a value or a control character is not allowed
     */
    public static function ofObject(mixed $object): self
    {
        if (!is_array($object)) {
            throw new \UnexpectedValueException('not an object');
        }
        $texts = [];
        foreach ($object as $name => $value) {
            $text = $value instanceof JsonNumber ? $value->text : $value;
            if ($text !== null && !is_string($text)) {
                throw new \UnexpectedValueException("$name is neither a text nor a number");
            }
            $texts[$name] = $text;
        }
        self::check($texts);
        return new self($texts);
    }

    /**
     * Refuses what could be read as two different sets of fields with one signature.
     *
     * @param array<array-key, ?string> $texts
     * @throws \UnexpectedValueException
     */
    public static function check(array $texts): void
    {
        foreach ($texts as $name => $text) {
            if (preg_match(self::NAME, (string) $name) !== 1) {
                throw new \UnexpectedValueException('a field name is not 1 to 64 of A-Z, a-z, 0-9 and _');
            }
            // preg_match is false for a text that is not UTF-8.
            if ($text !== null && preg_match(self::CONTROL, $text) !== 0) {
                throw new \UnexpectedValueException("$name has a control character or is not UTF-8");
            }
        }
    }

    /**
     * The first field whose value hides another field from MD5, or null.
     *
     * @param array<array-key, ?string> $texts
     */
    public static function findHidden(array $texts): ?string
    {
        foreach ($texts as $name => $text) {
            if ($text !== null && preg_match(self::HIDDEN, $text) === 1) {
                return (string) $name;
            }
        }
        return null;
    }

    /** @throws \UnexpectedValueException */
    public function text(string $name): string
    {
        return $this->texts[$name] ?? throw new \UnexpectedValueException("$name is missing");
    }

    public function optionalText(string $name): ?string
    {
        return $this->texts[$name] ?? null;
    }

    /**
     * An amount or a rate, as the text that came: `100.5`.
     *
     * @throws \UnexpectedValueException
     */
    public function decimal(string $name): string
    {
        $text = $this->text($name);
        if (preg_match('/\A-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\z/', $text) !== 1) {
            throw new \UnexpectedValueException("$name is not a plain decimal");
        }
        return $text;
    }

    public function optionalDecimal(string $name): ?string
    {
        return $this->optionalText($name) === null ? null : $this->decimal($name);
    }

    /** @throws \UnexpectedValueException */
    public function long(string $name): int
    {
        $text = $this->text($name);
        if (preg_match('/\A(?:0|[1-9][0-9]{0,17})\z/', $text) !== 1) {
            throw new \UnexpectedValueException("$name is not a whole number");
        }
        return (int) $text;
    }

    public function optionalLong(string $name): ?int
    {
        return $this->optionalText($name) === null ? null : $this->long($name);
    }

    /** A time of the service, in UTC. @throws \UnexpectedValueException */
    public function time(string $name): \DateTimeImmutable
    {
        $ms = $this->long($name);
        $time = \DateTimeImmutable::createFromFormat('U.v', sprintf('%d.%03d', intdiv($ms, 1000), $ms % 1000));
        return $time ?: throw new \UnexpectedValueException("$name is not a time");
    }

    public function optionalTime(string $name): ?\DateTimeImmutable
    {
        return $this->optionalText($name) === null ? null : $this->time($name);
    }
}
