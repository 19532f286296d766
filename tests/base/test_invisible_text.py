"""Characters that nobody sees are shown, named, and taken where they do no harm."""

from pathlib import Path

import pytest
from tests.rows import each_row

from merchant_wallet.base.addresses import parse_evm, parse_pasted_address, parse_tron, to_tron
from merchant_wallet.base.config import ConfigError, load_key_file, load_settings
from merchant_wallet.base.invisible_text import (
    clean,
    drop_invisible,
    find_invisible,
    note_invisible,
    show_invisible,
    trim,
)
from merchant_wallet.merchants.settings import SettingRefused, parse_setting

BOM, NBSP, ZERO_WIDTH, SOFT_HYPHEN, OVERRIDE = "\ufeff", "\u00a0", "\u200b", "\u00ad", "\u202e"
ADDRESS = "0x" + "ab" * 20


@each_row(
    ("text", "shown", "found"),
    [
        ("plain text", "plain text", None),
        ("ü中👩", "ü中👩", None),
        (f"ab{ZERO_WIDTH}c", "ab<U+200B>c", "U+200B zero width space at character 3"),
        (f"{BOM}x", "<U+FEFF>x", "U+FEFF byte order mark at character 1"),
        (f"a{NBSP}b", "a<U+00A0>b", "U+00A0 no-break space at character 2"),
        (f"a{SOFT_HYPHEN}", "a<U+00AD>", "U+00AD soft hyphen at character 2"),
        (f"a{OVERRIDE}b", "a<U+202E>b", "U+202E right-to-left override at character 2"),
        ("a\u3164", "a<U+3164>", "U+3164 hangul filler at character 2"),
        ("a\nb", "a<U+000A>b", "U+000A line feed at character 2"),
        ("👩\u200d👩", "👩<U+200D>👩", "U+200D zero width joiner at character 2"),
    ],
)
def test_what_nobody_sees_is_shown_and_named(text: str, shown: str, found: str | None) -> None:
    assert show_invisible(text) == shown
    assert find_invisible(text) == found
    assert note_invisible(text) == (f" (it has {found})" if found else "")


def test_what_a_caller_keeps_is_shown_as_it_is() -> None:
    assert show_invisible(f"a\nb{BOM}", keep="\n") == "a\nb<U+FEFF>"


@each_row(
    ("text", "trimmed", "seen", "cleaned"),
    [
        (f"{BOM} a{NBSP}b {ZERO_WIDTH}\n", f"a{NBSP}b", "ab", "a b"),
        (f"{ZERO_WIDTH}{NBSP}", "", "", ""),
        ("a\u3000b", "a\u3000b", "ab", "a b"),
        (f"a{OVERRIDE}b", f"a{OVERRIDE}b", "ab", f"a{OVERRIDE}b"),
        ("a b", "a b", "a b", "a b"),
        ("\x1b[31ma\x00 ", "\x1b[31ma\x00", "\x1b[31ma\x00", "\x1b[31ma\x00"),
    ],
)
def test_ends_are_trimmed_and_odd_spaces_become_the_usual_one(
    text: str, trimmed: str, seen: str, cleaned: str
) -> None:
    assert (trim(text), drop_invisible(text), clean(text)) == (trimmed, seen, cleaned)


def test_a_pasted_address_is_what_is_seen_of_it() -> None:
    tron = to_tron(bytes.fromhex("ab" * 20))
    for text in (ADDRESS, tron):
        for odd in (BOM + text, text + ZERO_WIDTH, f"{NBSP}{text[:9]}{SOFT_HYPHEN}{text[9:]}\n"):
            assert parse_pasted_address(odd) == parse_pasted_address(text)


def test_an_address_of_a_request_is_refused_with_the_characters_name() -> None:
    with pytest.raises(ValueError, match=r"hex digits \(it has U\+200B zero width space at character 43\)$"):
        parse_evm(ADDRESS + ZERO_WIDTH)
    with pytest.raises(ValueError, match=r"with T \(it has U\+FEFF byte order mark at character 1\)$"):
        parse_tron(BOM + "T" * 34)


def test_a_merchants_settings_are_taken_as_they_are_seen() -> None:
    assert parse_setting("name", f"{BOM}Corner{NBSP}Shop{ZERO_WIDTH}") == ("name", "Corner Shop")
    assert parse_setting("daily-limit", f"{NBSP}12.5{ZERO_WIDTH}")[1] == 12_500_000
    networks = parse_setting("networks", f"{BOM}192.0.2.0/24{ZERO_WIDTH},{NBSP}198.51.100.7/32")[1]
    assert networks == ["192.0.2.0/24", "198.51.100.7/32"]
    addresses = parse_setting("allowed-addresses", f"{ADDRESS}{ZERO_WIDTH} {BOM}{ADDRESS}")[1]
    assert addresses == parse_setting("allowed-addresses", ADDRESS)[1]


@each_row(
    ("name", "text", "odd"),
    [
        ("name", f"Sh{ZERO_WIDTH}op", "U+200B zero width space at character 3"),
        ("name", f"Shop{OVERRIDE}x", "U+202E right-to-left override at character 5"),
        ("daily-limit", f"12{NBSP}000", "U+00A0 no-break space at character 3"),
        ("networks", f"192.0.2{SOFT_HYPHEN}.0/24", "U+00AD soft hyphen at character 8"),
    ],
)
def test_what_stands_inside_a_merchants_setting_is_named(name: str, text: str, odd: str) -> None:
    with pytest.raises(SettingRefused) as refused:
        parse_setting(name, text)
    assert f"(it has {odd})" in str(refused.value)


def test_settings_are_taken_without_what_nobody_sees_at_their_ends(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(f"{BOM}{'ab' * 32}\r\n".encode())
    key.chmod(0o600)
    toml = tmp_path / "wallet.toml"
    toml.write_bytes(f'{BOM}port = 8081\nhost = "127.0.0.1{ZERO_WIDTH}"\n'.encode())
    toml.chmod(0o640)
    settings = load_settings(
        {"WALLET_MASTER_KEY_FILE": str(key), "WALLET_RATE_LIMIT": f"7{NBSP}", "WALLET_CONFIG": str(toml)}
    )
    assert (settings.master_key, settings.rate_limit) == (bytes.fromhex("ab" * 32), 7)
    assert (settings.port, settings.host) == (8081, "127.0.0.1")
    assert load_key_file(key, "key") == settings.master_key


def test_a_character_inside_a_setting_is_named_and_a_secret_is_not() -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_RATE_LIMIT": f"1{ZERO_WIDTH}0"})
    assert str(refused.value).endswith("(it has U+200B zero width space at character 2).")
    secret = "cd" * 16
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_MASTER_KEY": f"{secret}{NBSP}{secret}"})
    assert str(refused.value) == (
        "WALLET_MASTER_KEY must be 64 hexadecimal digits (it has U+00A0 no-break space at character 33)."
    )


def test_the_lines_of_a_list_are_not_named() -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_ERC20_RPC_HEADERS": f"n.example X-Key: abc\nn.exa{ZERO_WIDTH}mple X-Key"})
    assert "(it has U+200B zero width space at character 27)" in str(refused.value)


def test_a_password_is_taken_as_it_is() -> None:
    assert load_settings({"WALLET_SMTP_PASSWORD": f" p{NBSP}"}).smtp_password == f" p{NBSP}"
