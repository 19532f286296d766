"""The limits of a key: what may be typed, and which limits are wider."""

import pytest
from msgspec.structs import replace
from tests.rows import each_row

from merchant_wallet.merchants.app_keys import AppKey
from merchant_wallet.merchants.key_acts import KeyTooWide, check_new_key
from merchant_wallet.merchants.key_limits import (
    KeyLimits,
    is_covered,
    list_wider,
    parse_name,
    parse_networks,
    parse_operations,
)
from merchant_wallet.merchants.settings import SettingRefused

READS = ("getMerchantBalance", "queryOrder")


@each_row(
    ("before", "after", "wider"),
    [
        (KeyLimits(), KeyLimits(READS, ("192.0.2.0/24",)), []),
        (KeyLimits(READS), KeyLimits(READS[:1]), []),
        (KeyLimits(READS[:1]), KeyLimits(READS), ["operations"]),
        (KeyLimits(READS), KeyLimits(), ["operations"]),
        (KeyLimits((), ("192.0.2.0/24",)), KeyLimits((), ("192.0.2.7/32", "192.0.2.128/25")), []),
        (KeyLimits((), ("192.0.2.0/24",)), KeyLimits((), ("192.0.2.0/23",)), ["networks"]),
        (KeyLimits((), ("192.0.2.0/24",)), KeyLimits((), ("2001:db8::/64",)), ["networks"]),
        (KeyLimits((), ("192.0.2.0/24",)), KeyLimits(), ["networks"]),
        (KeyLimits(READS, ("10.0.0.0/8",)), KeyLimits(), ["operations", "networks"]),
    ],
)
def test_limits_are_wider_if_they_allow_anything_more(
    before: KeyLimits, after: KeyLimits, wider: list[str]
) -> None:
    assert list_wider(before, after) == wider


def test_two_narrow_keys_together_do_not_cover_a_wide_one() -> None:
    narrow = [KeyLimits(READS, ("10.0.0.0/8",)), KeyLimits((), ("192.0.2.0/24",))]
    assert is_covered(KeyLimits(READS, ("10.1.0.0/16",)), narrow)
    assert not is_covered(KeyLimits((), ("10.1.0.0/16",)), narrow)


def test_a_new_key_may_do_what_a_key_does_and_not_what_a_revoked_one_did() -> None:
    wide = AppKey(2, "mk_2", "till", [], [], 1, "operator:ann", None, None, 1, None, 1)
    revoked = replace(wide, revoked_ms=2)
    narrow = replace(wide, key_no=3, operations=list(READS))
    check_new_key(KeyLimits(), [wide, narrow])
    check_new_key(KeyLimits(READS[:1]), [revoked, narrow])
    with pytest.raises(KeyTooWide):
        check_new_key(KeyLimits(), [revoked, narrow])


def test_what_is_typed_is_sorted_and_any_is_no_limit() -> None:
    assert parse_operations("queryOrder, getMerchantBalance") == READS
    assert parse_operations("any") == ()
    assert parse_networks("192.0.2.7\n 10.0.0.0/8") == ("10.0.0.0/8", "192.0.2.7/32")
    assert parse_networks("") == ()
    assert parse_name(" till ") == "till"


@each_row(
    ("parse", "text", "says"),
    [
        (parse_operations, "withdraw", "no operation"),
        (parse_networks, "192.0.2.1/24", "networks must be"),
        (parse_networks, " ".join(f"10.0.0.{n}" for n in range(51)), "at most 50"),
        (parse_name, "", "1 to 64"),
        (parse_name, "a\nb", "1 to 64"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_rule(parse: object, text: str, says: str) -> None:
    assert callable(parse)
    with pytest.raises(SettingRefused, match=says):
        parse(text)
