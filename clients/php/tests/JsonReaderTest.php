<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\JsonList;
use MerchantWallet\JsonNumber;
use MerchantWallet\JsonReader;
use PHPUnit\Framework\TestCase;

/** The reader takes exactly JSON, and keeps the text of numbers. */
final class JsonReaderTest extends TestCase
{
    public function testNumbersKeepTheirText(): void
    {
        $texts = ['0', '-0', '100.50', '0.000001', '1E-6', '9007199254740993', '123456789012.123456'];
        $read = JsonReader::read('[' . implode(' ,', $texts) . ']');
        self::assertInstanceOf(JsonList::class, $read);
        self::assertSame($texts, array_map(static fn (JsonNumber $number): string => $number->text, $read->items));
    }

    public function testStringsAreDecoded(): void
    {
        self::assertSame(['a' => "\u{1F600}é\"\\/\n{12.50}", '' => null], JsonReader::read(
            " {\"a\":\"\\ud83d\\ude00\\u00e9\\\"\\\\\\/\\n{12.50}\", \"\" :null}\r\n"
        ));
    }

    public function testWhatIsNotJsonIsRefused(): void
    {
        $texts = [
            '', ' ', '{', '}', '{}}', '{"a"}', '{"a":}', '{"a":1,}', '{a:1}', "{'a':1}", '{"a":1 "b":2}', '[1,]', '[,1]', '[1 2]',
            '01', '1.', '.5', '+1', '1e', '0x1', 'NaN', 'Infinity', 'nul', 'truefalse', '"', '"\\x"', '"\\u12"', "\"\t\"", "\"\x7f\xff\"",
            '"\\ud800"', '"\\udc00\\ud800"', "\u{FEFF}{}", '{"a":1}x', '{"a":1,"a":1}', '{"a":1,"\\u0061":1}', str_repeat('[', 99),
            "\0", '1 2', '// {}',
        ];
        $accepted = [];
        foreach ($texts as $text) {
            try {
                JsonReader::read($text);
                $accepted[] = $text;
            } catch (\JsonException) {
            }
        }
        self::assertSame([], $accepted);
    }

    public function testALongStringIsReadToo(): void
    {
        $long = str_repeat('a\\n', 300_000);
        self::assertSame(600_000, strlen(JsonReader::read("\"$long\"")));
    }
}
