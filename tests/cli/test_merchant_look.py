"""`merchant look`: the colour, the logo and the link of a merchant's wallet pages at the terminal."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.cli.conftest import Wallet
from tests.cli.test_keys import safe
from tests.cli.test_proposals import WHY, Terminal, last_entry, terminal
from tests.merchants.test_brand import draw, huge_png

__all__ = ["safe", "terminal"]

LOOK = ("merchant", "look", "Shop")
LINK = "https://shop.example/wallet"
PLAIN = (None, None, None)


def shown(wallet: Wallet) -> tuple[Any, ...]:
    """The look that `merchant show` prints: colour, logo, link."""
    found = wallet.ask("merchant", "show", "Shop")
    return found["brandColour"], found["brandLogo"], found["customerUrl"]


def keep(folder: Path, content: bytes, name: str = "logo.png") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_look_is_set_shown_and_taken_away(wallet: Wallet, tmp_path: Path) -> None:
    wallet.open_merchant()
    assert shown(wallet) == PLAIN
    picture = keep(tmp_path, draw("JPEG"), "house style.jpg")
    made = wallet.ask(*LOOK, "--colour", "#8A1538", "--logo", picture, "--customer-url", LINK)
    assert (made["brandColour"], made["customerUrl"]) == ("#8a1538", LINK)
    assert shown(wallet) == ("#8a1538", made["brandLogo"], LINK)
    ((content, uploaded_by),) = wallet.read(
        "select content, uploaded_by from brand_logo where digest = %(digest)s", digest=made["brandLogo"]
    )
    assert uploaded_by.startswith("cli:")
    with Image.open(io.BytesIO(content)) as stored:
        assert (stored.format, stored.size) == ("PNG", (200, 80))
    entry = last_entry(wallet)
    assert (entry["action"], entry["after"]["brandLogo"]) == ("merchant.set", made["brandLogo"])
    told = wallet.run(*LOOK, "--logo", "none").stdout
    assert told == f"brand-logo: {made['brandLogo']} -> none\n"
    wallet.run(*LOOK, "--colour", "none", "--customer-url", "none")
    assert shown(wallet) == PLAIN


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "not a PNG or JPEG picture"),
        (draw("GIF"), "not a PNG or JPEG picture"),
        (draw()[:120], "not a PNG or JPEG picture"),
        (b"", "not a PNG or JPEG picture"),
        (draw(size=(400, 47)), "at least 48 pixels"),
        (huge_png(), "16 million pixels"),
        (b"\x89PNG\r\n\x1a\n" + bytes(1_048_576), "at most 1 MB"),
    ],
    ids=["svg", "gif", "cut off", "empty", "too small", "too many pixels", "too many bytes"],
)
def test_what_is_no_logo_is_refused_and_nothing_is_kept(
    wallet: Wallet, tmp_path: Path, content: bytes, said: str
) -> None:
    wallet.open_merchant()
    # The colour is right, but all or nothing is changed.
    assert said in wallet.refuse(*LOOK, "--colour", "#8a1538", "--logo", keep(tmp_path, content))
    assert shown(wallet) == PLAIN
    assert wallet.read("select count(*) from brand_logo") == [(0,)]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ((), 2, "Nothing to change"),
        (("--colour", "crimson"), 1, "brand-colour must be a colour such as #8a1538"),
        (("--colour", "#8a15"), 1, "brand-colour must be"),
        (("--customer-url", "javascript:alert(1)"), 1, "customer-url must be"),
        (("--customer-url", f"https://shop.example/{'x' * 100}"), 1, "customer-url must be"),
        (("--logo", "/nowhere/logo.png"), 2, "can't be read: No such file"),
        (("--logo", "/"), 2, "can't be read: Is a directory"),
        # It never ends. No more than the limit is read of it.
        (("--logo", "/dev/zero"), 1, "at most 1 MB"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(
    wallet: Wallet, options: tuple[str, ...], status: int, said: str
) -> None:
    wallet.open_merchant()
    assert said in wallet.refuse(*LOOK, *options, status=status)
    assert shown(wallet) == PLAIN


def test_outside_the_sandbox_customers_are_led_to_a_secure_page_only(safe: Wallet) -> None:
    safe.variables["WALLET_ERC20_RPC"] = "http://127.0.0.1:9"
    safe.run("keys", "create", "--count", 1)
    safe.open_merchant()
    told = safe.refuse(*LOOK, "--customer-url", "http://shop.example/wallet")
    assert told == "customer-url must begin with https:// outside the sandbox."
    assert safe.ask(*LOOK, "--customer-url", LINK)["customerUrl"] == LINK


def test_a_new_look_waits_for_another_person_and_one_takes_it_away(
    terminal: Terminal, tmp_path: Path
) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    dress = (*LOOK, "--colour", "#8a1538", "--logo", keep(tmp_path, draw()))
    assert "--reason" in wallet.refuse(*dress)
    made = wallet.ask(*dress, *WHY)
    assert shown(wallet) == PLAIN
    assert "your own" in wallet.refuse("proposals", "accept", made["proposalNo"])
    done = terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert done["state"] == "accepted"
    colour, logo, link = shown(wallet)
    assert (colour, logo, link) == ("#8a1538", done["after"]["brand-logo"], None)
    terminal.of("root").run(*LOOK, "--colour", "none", "--logo", "none")
    assert shown(wallet) == PLAIN


def upload_many(wallet: Wallet, merchant_id: int, count: int) -> None:
    """Let a merchant have had so many logos today."""
    wallet.tamper(
        "insert into brand_logo (digest, merchant_id, content, uploaded_ms, uploaded_by)"
        " select lpad(n::text, 64, '0'), %(merchant_id)s, '\\x00', extract(epoch from now()) * 1000, 'ann'"
        "   from generate_series(1, %(count)s) n",
        merchant_id=merchant_id,
        count=count,
    )


def test_only_so_many_logos_are_uploaded_in_a_day(wallet: Wallet, tmp_path: Path) -> None:
    upload_many(wallet, wallet.open_merchant(), 50)
    assert "Try again tomorrow" in wallet.refuse(*LOOK, "--logo", keep(tmp_path, draw()))
    wallet.tamper("update brand_logo set uploaded_ms = uploaded_ms - 86400001")
    assert wallet.ask(*LOOK, "--logo", keep(tmp_path, draw()))["brandLogo"]


def test_logos_are_kept_so_their_number_ends_and_an_earlier_file_is_taken_again(
    wallet: Wallet, tmp_path: Path
) -> None:
    merchant_id = wallet.open_merchant()
    first = wallet.ask(*LOOK, "--logo", keep(tmp_path, draw()))["brandLogo"]
    upload_many(wallet, merchant_id, 500)
    wallet.tamper("update brand_logo set uploaded_ms = uploaded_ms - 86400001")
    wallet.run(*LOOK, "--logo", "none")
    assert "500 logos" in wallet.refuse(*LOOK, "--logo", keep(tmp_path, draw(size=(300, 300))))
    assert wallet.ask(*LOOK, "--logo", keep(tmp_path, draw()))["brandLogo"] == first
