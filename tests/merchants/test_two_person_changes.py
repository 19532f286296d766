"""Which changes of a merchant's settings loosen a guard, and so need two people."""

from tests.merchants.test_records import SHOP
from tests.rows import each_row

from merchant_wallet.merchants.two_person_changes import list_loosened, with_settings

ROWS = (
    ("networks", "192.0.2.0/24", "192.0.2.0/28", False),
    ("networks", "none", "192.0.2.0/24", False),
    ("networks", "192.0.2.0/24", "192.0.2.0/24 198.51.100.7/32", True),
    ("networks", "192.0.2.0/24", "192.0.0.0/16", True),
    ("networks", "192.0.2.0/24", "none", True),
    ("sign-method", "MD5", "HMAC", False),
    ("sign-method", "HMAC", "MD5", True),
    ("frame-origins", "https://a.example https://b.example", "https://a.example", False),
    ("frame-origins", "none", "https://a.example", True),
    ("frame-origins", "https://a.example", "https://b.example", True),
    ("disabled-operations", "none", "exchange", False),
    ("disabled-operations", "exchange", "none", True),
    ("disabled-operations", "exchange", "queryOrder", True),
    ("require-pin", "off", "on", False),
    ("require-pin", "on", "off", True),
)


@each_row("name, was, becomes, loosens", ROWS)
def test_change_that_loosens_a_guard_needs_two(name: str, was: str, becomes: str, loosens: bool) -> None:
    before = with_settings(SHOP, {name: was})
    after = with_settings(before, {name: becomes})
    assert list_loosened(before, after, {}, 0) == ([name] if loosens else [])
