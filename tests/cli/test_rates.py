"""`rates`: set, remove, pause, list."""

from tests.cli.conftest import Wallet

from merchant_wallet.base.db import connect_sync, place


def list_copies(wallet: Wallet, cell: str) -> list[tuple[int | None, bool]]:
    """USDT:KFB by which books in a cell exchange, and whether it is paused."""
    with connect_sync(place(wallet.url, None, cell)) as connection:
        return connection.execute("select usdt_kfb_e8, usdt_kfb_paused from rate").fetchall()


def test_a_change_holds_in_every_cell_when_the_command_has_answered(wallet: Wallet) -> None:
    # No worker runs, which would compare the copies each second.
    wallet.run("cell", "add", "east")
    wallet.run("rates", "set", "USDT:KFB", "7.10")
    assert list_copies(wallet, "east") == [(710_000_000, False)]
    wallet.run("rates", "pause", "USDT:KFB")
    assert list_copies(wallet, "east") == [(710_000_000, True)]
    wallet.run("rates", "resume", "USDT:KFB")
    wallet.run("rates", "remove", "USDT:KFB")
    assert list_copies(wallet, "east") == [(None, False)]


def test_the_platforms_rate_is_set_and_listed(wallet: Wallet) -> None:
    line = wallet.ask("rates", "set", "USDT:KFB", "7.10", "--max-age", "3600")
    assert (line["merchantId"], line["rate"], line["maxAgeMs"], line["paused"]) == (
        None,
        "7.1",
        3_600_000,
        False,
    )
    assert wallet.ask("rates", "list") == {"rates": [line]}
    assert "3600 s" in wallet.run("rates", "list").stdout


def test_a_merchants_own_rate_is_paused_and_resumed(wallet: Wallet) -> None:
    merchant_id = wallet.open_merchant()
    own = wallet.ask("rates", "set", "KFB:USDT", "0.14", "--merchant", "Shop")
    assert own["merchantId"] == merchant_id
    paused = wallet.ask("rates", "pause", "KFB:USDT", "--merchant", "Shop")
    assert (paused["paused"], paused["rate"]) == (True, "0.14")
    assert wallet.ask("rates", "resume", "KFB:USDT", "--merchant", merchant_id)["paused"] is False


def test_a_merchant_whose_rate_is_removed_has_the_platforms_and_the_platform_then_has_none(
    wallet: Wallet,
) -> None:
    wallet.open_merchant()
    wallet.run("rates", "set", "USDT:KFB", "7.1")
    wallet.run("rates", "set", "USDT:KFB", "7", "--merchant", "Shop")
    removed = wallet.ask("rates", "remove", "USDT:KFB", "--merchant", "Shop")
    assert (removed["rate"], removed["paused"]) == (None, False)
    entry = wallet.ask("audit", "list", "--limit", "1")["entries"][0]
    assert (entry["action"], entry["before"]["rate"], entry["after"]["platformRate"]) == (
        "rate.remove",
        "7",
        "7.1",
    )
    assert [line["merchantId"] for line in wallet.ask("rates", "list")["rates"]] == [None]
    wallet.run("rates", "remove", "USDT:KFB")
    assert wallet.ask("rates", "list") == {"rates": []}


def test_rates_that_would_pump_money_are_refused_with_the_largest_that_would_not(wallet: Wallet) -> None:
    wallet.run("rates", "set", "USDT:KFB", "8")
    assert "at most 0.125" in wallet.refuse("rates", "set", "KFB:USDT", "0.13")
    assert wallet.ask("rates", "set", "KFB:USDT", "0.125")["rate"] == "0.125"


def test_what_is_no_rate_or_no_direction_is_refused(wallet: Wallet) -> None:
    assert "plain decimal" in wallet.refuse("rates", "set", "USDT:KFB", "7,1")
    assert "DIRECTION" in wallet.refuse("rates", "set", "KFB", "7", status=2)
    assert "--max-age" in wallet.refuse("rates", "set", "USDT:KFB", "7", "--max-age", "0", status=2)
    assert "nobody" in wallet.refuse("rates", "pause", "USDT:KFB", "--merchant", "nobody")
