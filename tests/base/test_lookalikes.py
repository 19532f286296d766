"""Look-alike addresses: what people can't tell apart at a glance."""

import hashlib

from tests.rows import each_row

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.lookalikes import find_byte_bounds, find_text_bounds, looks_like, show_ends

PAID = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
TRON = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


@each_row(
    ("address", "known", "expected"),
    [
        ("0xd8da000000000000000000000000000000006045", PAID, True),
        (PAID.lower(), PAID, False),
        ("0xd8da000000000000000000000000000000006145", PAID, False),
        ("0xd8db000000000000000000000000000000006045", PAID, False),
        ("TJRyWa1111111111111111111111115tDeC", TRON, True),
        # Other letters of base58 are other characters.
        ("TJRyw11111111111111111111111115tDeC", TRON, False),
        ("TJRyW11111111111111111111111115tDec", TRON, False),
        (TRON, TRON, False),
        ("0xJRyW00000000000000000000000000000005tDeC", TRON, False),
    ],
)
def test_the_first_and_last_four_characters_make_addresses_look_alike(
    address: str, known: str, expected: bool
) -> None:
    assert looks_like(address, known) is expected
    assert looks_like(known, address) is expected


def test_the_ends_are_shown_as_people_read_them() -> None:
    assert (show_ends(PAID), show_ends(TRON)) == ("0xd8da…6045", "TJRyW…tDeC")


def test_bounds_hold_what_begins_alike_and_nothing_else() -> None:
    addresses = [hashlib.sha256(str(number).encode()).digest()[:20] for number in range(1_000)]
    addresses += [bytes(20), b"\xff" * 20]
    for form in (to_eip55, to_tron):
        for wanted in addresses[::100]:
            beginning = show_ends(form(wanted)).partition("…")[0]
            low, high = find_byte_bounds(form(wanted))
            least, greatest = find_text_bounds(form(wanted))
            for other in addresses:
                text = form(other)
                shown = show_ends(text).partition("…")[0]
                assert (low <= other <= high) is (shown == beginning)
                assert (least <= text.lower() <= greatest) is (shown.lower() == beginning.lower())
