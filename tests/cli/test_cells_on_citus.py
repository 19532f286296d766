"""`cell add --citus` and `cell follow`, with a real Citus."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.cells.citus_layout import COORDINATOR, NO_CITUS, add_roles, drop_schema, move_schema
from tests.cli.conftest import Wallet

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.units import DAY_MS

NORTH = "north"
"""Other tests of Citus use another schema."""

pytestmark = pytest.mark.skipif(not COORDINATOR, reason=NO_CITUS)


@pytest.fixture
def coordinator(wallet: Wallet) -> Iterator[psycopg.Connection]:
    """The coordinator, with the service's roles and without the cell."""
    with connect_sync(COORDINATOR) as connection:
        drop_schema(connection, NORTH)
        add_roles(connection, str(conninfo_to_dict(wallet.url)["user"]))
        yield connection
        drop_schema(connection, NORTH)


def test_a_cell_that_citus_places_takes_merchants_and_follows_its_schema(
    wallet: Wallet, coordinator: psycopg.Connection
) -> None:
    before = wallet.ask("cell", "add", NORTH, COORDINATOR, "--citus")
    assert before["added"]
    assert conninfo_to_dict(before["address"])["port"] != conninfo_to_dict(COORDINATOR)["port"]
    assert not wallet.ask("cell", "add", NORTH, COORDINATOR, "--citus")["added"]
    wallet.open_merchant("Shop", "--cell", NORTH)
    wallet.credit("Shop", "USDT", "100")
    assert wallet.ask("cell", "follow", NORTH) == {
        "name": NORTH,
        "address": before["address"],
        "moved": False,
    }
    move_schema(coordinator, NORTH)
    wallet.credit("Shop", "USDT", "100")
    after = wallet.ask("cell", "follow", NORTH)
    assert (after["moved"], after["address"] != before["address"]) == (True, True)
    wallet.credit("Shop", "USDT", "100")
    assert wallet.balance("Shop", "merchant:USDT") == "300"
    assert wallet.ask("book", "verify")["ok"] is True
    assert wallet.ask("migrate")["cells"] == {NORTH: []}


def test_days_of_nonces_are_made_on_the_coordinator(wallet: Wallet, coordinator: psycopg.Connection) -> None:
    wallet.ask("cell", "add", NORTH, COORDINATOR, "--citus")
    wallet.open_merchant("Shop", "--cell", NORTH)
    today = now_ms() // DAY_MS
    for day in (today, today + 1):
        coordinator.execute(f"drop table {NORTH}.nonce_{day}".encode())
    wallet.credit("Shop", "USDT", "100")
    assert wallet.balance("Shop", "merchant:USDT") == "100"
