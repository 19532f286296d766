"""What a typed text can mean: beginnings, shortened forms, ranges of addresses and numbers, amounts."""

from tests.rows import each_row

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.reporting.search_words import Word, read_word

ADDRESSES = [bytes([number]) * 20 for number in (0, 1, 17, 127, 200, 255)] + [bytes(range(100, 120))]


@each_row(
    ("text", "word"),
    [
        ("0x12ab…9f00", Word("0x12ab", "9f00")),
        (" T9yD...8uz ", Word("T9yD", "8uz")),
        ("player-7", Word("player-7")),
        ("a…", Word("a")),
        ("…9f00", None),
        ("", None),
        ("a\0b", None),
        ("x" * 129, None),
    ],
)
def test_a_shortened_form_is_a_beginning_and_an_end(text: str, word: Word | None) -> None:
    assert read_word(text) == word


@each_row("address", ADDRESSES)
@each_row("length", [4, 5, 8, 12, 33, 34])
def test_each_beginning_of_a_tron_address_is_a_range_with_it(address: bytes, length: int) -> None:
    written = to_tron(address)
    word = Word(written[:length])
    within = word.find_byte_range()
    assert within is not None
    assert within[0] <= address <= within[1]
    assert word.fits_address(address)
    assert Word(written[:length], written[-4:]).fits_address(address)
    assert not Word(written[:length], "????").fits_address(address)


@each_row("address", ADDRESSES)
@each_row("length", [4, 5, 7, 40])
def test_each_beginning_of_an_evm_address_is_a_range_with_it(address: bytes, length: int) -> None:
    written = to_eip55(address)
    for head in (written[: length + 2], written[: length + 2].lower(), address.hex()[:length]):
        within = Word(head).find_byte_range()
        assert within is not None
        assert within[0] <= address <= within[1], head


@each_row("head", ["Tx", "0x12", "12a", "T0OI", "player", "zzzz", "T" + "z" * 33, "0x" + "a" * 41])
def test_what_is_no_address_has_no_range(head: str) -> None:
    assert Word(head).find_byte_range() is None


def test_the_digits_of_a_number_are_ranges_of_numbers() -> None:
    ranges = Word("12345").list_id_ranges()
    assert ranges[0] == (12345, 12346)
    assert ranges[1] == (123450, 123460)
    assert len(ranges) == 12
    assert Word("12345", "99").list_id_ranges()[:2] == [(1234599, 1234600), (12345099, 12345100)]
    for text in ("1234", "012345", "12a45", "١٢٣٤٥", "9" * 40):
        assert Word(text).list_id_ranges() == [], text


@each_row(
    ("text", "units"),
    [
        ("1,234.50", 1_234_500_000),
        ("1234.5", 1_234_500_000),
        ("0.000001", 1),
        ("500 USDT", 500_000_000),
        ("1,234.5usdt", 1_234_500_000),
        ("500 KFB", None),
        ("12,34", None),
        ("0", None),
        ("1.0000001", None),
        ("-5", None),
        ("abc", None),
    ],
)
def test_an_amount_is_read_as_pages_show_it(text: str, units: int | None) -> None:
    assert Word(text).find_units() == units
