"""`operator`: creating operators at the terminal, and the audit log of it."""

import asyncio
from typing import Any

import pytest
from tests.cli.conftest import Wallet

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.operators import authentication
from merchant_wallet.operators.authentication import MustEnrol, SignIn, Wrong
from merchant_wallet.operators.sessions import open_session

GOOD = "seven otters sing"


def sign_in(wallet: Wallet, name: str, password: str) -> SignIn:
    async def act() -> SignIn:
        async with await connect(wallet.url) as conn:
            return await authentication.sign_in(conn, name, password, source="192.0.2.1", at_ms=now_ms())

    return asyncio.run(act())


def open_sessions(wallet: Wallet, operator_id: int, count: int) -> None:
    async def act() -> None:
        async with await connect(wallet.url) as conn:
            for number in range(count):
                await open_session(
                    conn,
                    operator_id,
                    totp_passed=True,
                    source="192.0.2.1",
                    user_agent=f"Fox/{number}",
                    at_ms=now_ms(),
                )

    asyncio.run(act())


def logged(wallet: Wallet) -> list[tuple[str, str, Any, Any]]:
    """The audit log, oldest first."""
    entries = wallet.ask("audit", "list")["entries"]
    return [(line["action"], line["subject"], line["before"], line["after"]) for line in reversed(entries)]


def test_an_operator_is_made_and_the_password_opens_the_door(wallet: Wallet) -> None:
    made = wallet.ask("operator", "create", "ann", "--role", "owner")
    assert (made["name"], made["role"], made["status"], made["enrolled"], made["mustEnrol"]) == (
        "ann",
        "owner",
        "active",
        False,
        True,
    )
    assert isinstance(sign_in(wallet, "ann", made["password"]), MustEnrol)
    assert logged(wallet) == [
        ("operator.create", "operator ann", None, {"role": "owner", "merchantId": None})
    ]
    said = wallet.run("operator", "create", "bob", "--role", "auditor")
    assert "shown this once" in said.stderr
    assert "password" in said.stdout


def test_a_chosen_password_comes_from_standard_input_and_is_not_shown(wallet: Wallet) -> None:
    said = wallet.run(
        "operator", "create", "ann", "--role", "owner", "--password-stdin", stdin=f"{GOOD}\r\nmore"
    )
    assert GOOD not in said.output
    assert isinstance(sign_in(wallet, "ann", GOOD), MustEnrol)
    said = wallet.run(
        "operator", "create", "bob", "--role", "owner", "--password-stdin", stdin="short", status=1
    )
    assert "at least 12 characters" in said.stderr
    assert [line["name"] for line in wallet.ask("operator", "list")["operators"]] == ["ann"]


def test_a_merchants_user_is_of_one_merchant(wallet: Wallet) -> None:
    merchant_id = wallet.open_merchant()
    made = wallet.ask("operator", "create", "desk", "--role", "merchant", "--merchant", "Shop")
    assert made["merchantId"] == merchant_id
    assert "names its merchant" in wallet.refuse("operator", "create", "x", "--role", "merchant")
    assert "no other role" in wallet.refuse(
        "operator", "create", "x", "--role", "owner", "--merchant", "Shop"
    )
    assert "'Nowhere'" in wallet.refuse(
        "operator", "create", "x", "--role", "merchant", "--merchant", "Nowhere"
    )


@pytest.mark.parametrize("name", ["a b", "ännchen"])
def test_a_name_that_is_none_is_refused(wallet: Wallet, name: str) -> None:
    assert "1 to 64 letters" in wallet.refuse("operator", "create", name, "--role", "owner")


def test_the_list_and_one_operator_show_no_secret(wallet: Wallet) -> None:
    made = wallet.ask("operator", "create", "ann", "--role", "owner")
    listed = wallet.run("operator", "list").stdout
    assert "ann" in listed
    shown = wallet.ask("operator", "show", "ANN")
    assert (shown["name"], shown["recoveryCodesLeft"]) == ("ann", 0)
    for text in (listed, str(shown), str(wallet.ask("audit", "list"))):
        assert made["password"] not in text
        assert "argon2" not in text
    assert "no operator 'eve'" in wallet.refuse("operator", "show", "eve")


def test_a_reset_gives_a_new_password_and_signs_out(wallet: Wallet) -> None:
    old = wallet.ask("operator", "create", "ann", "--role", "owner")
    open_sessions(wallet, old["operatorId"], 2)
    sessions = wallet.ask("operator", "sessions", "ann")["sessions"]
    assert [line["userAgent"] for line in sessions] == ["Fox/0", "Fox/1"]
    new = wallet.ask("operator", "reset", "ann")
    assert new["mustEnrol"] is True
    assert sign_in(wallet, "ann", old["password"]) == Wrong()
    assert isinstance(sign_in(wallet, "ann", new["password"]), MustEnrol)
    assert wallet.ask("operator", "sessions", "ann") == {"sessions": []}
    before = {"enrolled": False, "newCredentials": False}
    after = {"enrolled": False, "newCredentials": True}
    assert logged(wallet)[-1] == ("operator.reset", "operator ann", before, after)


def test_the_last_owner_can_be_neither_disabled_nor_demoted(wallet: Wallet) -> None:
    wallet.run("operator", "create", "ann", "--role", "owner")
    before = logged(wallet)
    assert "last active owner" in wallet.refuse("operator", "disable", "ann")
    assert "last active owner" in wallet.refuse("operator", "set-role", "ann", "--role", "auditor")
    assert logged(wallet) == before
    wallet.run("operator", "create", "bob", "--role", "owner")
    assert wallet.ask("operator", "disable", "ann")["status"] == "disabled"
    assert wallet.ask("operator", "enable", "ann")["status"] == "active"
    assert wallet.ask("operator", "set-role", "ann", "--role", "auditor")["role"] == "auditor"
    assert logged(wallet)[-3:] == [
        ("operator.disable", "operator ann", {"status": "active"}, {"status": "disabled"}),
        ("operator.enable", "operator ann", {"status": "disabled"}, {"status": "active"}),
        (
            "operator.set_role",
            "operator ann",
            {"role": "owner", "merchantId": None},
            {"role": "auditor", "merchantId": None},
        ),
    ]


def test_an_operator_is_signed_out_everywhere(wallet: Wallet) -> None:
    made = wallet.ask("operator", "create", "ann", "--role", "owner")
    open_sessions(wallet, made["operatorId"], 3)
    assert wallet.ask("operator", "end-sessions", "Ann") == {"name": "ann", "ended": 3}
    assert wallet.ask("operator", "sessions", "ann") == {"sessions": []}
    assert logged(wallet)[-1] == ("operator.end_sessions", "operator ann", None, {"ended": 3})


def test_failed_sign_ins_are_noted_as_seen_and_one_more_is_listed_again(wallet: Wallet) -> None:
    wallet.run("operator", "create", "ann", "--role", "owner")

    def waiting() -> list[dict[str, Any]]:
        return [one for one in wallet.ask("inbox")["items"] if one["kind"] == "sign-in"]

    assert sign_in(wallet, "ann", "wrong") == Wrong()
    wallet.tamper("update failed_sign_in set failures = 10")
    (item,) = waiting()
    assert item["text"] == "10 sign-ins failed within a day: operator ann"
    seen = wallet.ask("operator", "seen-failures", item["key"])
    assert (seen["subject"], seen["merchantId"], seen["failures"]) == ("operator ann", None, 10)
    told = {"day": seen["day"], "failures": 10}
    assert logged(wallet)[-1] == ("operator.see_failures", "operator ann", None, told)
    assert waiting() == []
    assert "No failed sign-ins wait under the key" in wallet.refuse("operator", "seen-failures", item["key"])
    wallet.tamper("update failed_sign_in set failures = 11")
    (again,) = waiting()
    assert again["text"].startswith("1 more sign-in failed since cli:")
    assert again["key"] != item["key"]
