"""`merchant keys` and others: several keys of a merchant at the terminal."""

import pytest
from tests.cli.conftest import Wallet


def test_a_key_is_added_listed_limited_rolled_and_revoked(wallet: Wallet) -> None:
    first = wallet.ask("merchant", "create", "Shop")
    made = wallet.ask("merchant", "add-key", "Shop", "--name", "till", "--operations", "queryOrder")
    assert (made["keyNo"], made["operations"], made["networks"]) == (2, ["queryOrder"], [])
    assert wallet.ask("merchant", "show", made["appKey"])["merchantId"] == first["merchantId"]
    keys = wallet.ask("merchant", "keys", "Shop")["keys"]
    assert [(key["keyNo"], key["appKey"], key["name"]) for key in keys] == [
        (1, first["appKey"], ""),
        (2, made["appKey"], "till"),
    ]
    assert made["appSecret"] not in str(keys)
    limited = wallet.ask("merchant", "set-key", "Shop", "2", "--networks", "192.0.2.0/24", "--name", "till 1")
    assert (limited["name"], limited["networks"]) == ("till 1", ["192.0.2.0/24"])
    rolled = wallet.ask("merchant", "roll-key", "Shop", "2", "--overlap", "7d")
    assert rolled["appSecret"] != made["appSecret"]
    assert rolled["liveSecrets"] == 2
    assert "still works" in wallet.refuse("merchant", "roll-key", "Shop", "2")
    revoked = wallet.ask("merchant", "revoke-key", "Shop", "2")
    assert (revoked["revoked"], revoked["repeated"]) == (True, False)
    assert wallet.ask("merchant", "revoke-key", "Shop", "2") == {**revoked, "repeated": True}
    assert "is revoked" in wallet.refuse("merchant", "roll-key", "Shop", "2")
    assert "no such key" in wallet.refuse("merchant", "revoke-key", "Shop", "3")
    assert "can't be revoked" in wallet.refuse("merchant", "revoke-key", "Shop", "1")


def test_the_audit_log_has_each_change_and_no_secret(wallet: Wallet) -> None:
    wallet.open_merchant()
    made = wallet.ask("merchant", "add-key", "Shop", "--name", "till")
    rolled = wallet.ask("merchant", "roll-key", "Shop", "2", "--overlap", "0")
    wallet.ask("merchant", "set-key", "Shop", "2", "--operations", "queryOrder")
    wallet.ask("merchant", "revoke-key", "Shop", "2")
    wallet.ask("merchant", "revoke-key", "Shop", "2")
    log = wallet.ask("audit", "list", "--merchant", "Shop")["entries"]
    actions = [entry["action"] for entry in log]
    for action in ("merchant.add_key", "merchant.roll_key", "merchant.set_key", "merchant.revoke_key"):
        assert actions.count(action) == 1
    assert made["appSecret"] not in str(log)
    assert rolled["appSecret"] not in str(log)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("set-key", "Shop", "2", "--name", "x"), "no such key"),
        (("set-key", "Shop", "1", "--operations", "withdraw"), "no operation"),
        (("add-key", "Shop", "--name", "x", "--networks", "here"), "networks must be"),
        (("roll-key", "Shop", "1", "--overlap", "1y"), "--overlap must be"),
        (("roll-key", "Shop", "1", "--overlap", "31d"), "at most 30 days"),
    ],
)
def test_a_refusal_says_what_to_do(wallet: Wallet, command: tuple[str, ...], says: str) -> None:
    wallet.open_merchant()
    assert says in wallet.refuse("merchant", *command)


def test_people_read_any_where_a_key_has_no_limit(wallet: Wallet) -> None:
    wallet.open_merchant()
    assert wallet.run("merchant", "keys", "Shop").stdout.count("any") == 2
    assert wallet.ask("merchant", "keys", "Shop")["keys"][0]["networks"] == []
