"""What is checked before anything starts."""

import asyncio
from pathlib import Path

import pytest

from merchant_wallet.base import db
from merchant_wallet.base.config import MASTER_KEY_FILE, ConfigError
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.settings import Settings, make_settings
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.processes.base import is_key_proven, prepare_master_key, require_supported

OURS, ANOTHER = bytes(32), bytes([1]) * 32


def _open_merchant(url: str) -> None:
    async def scenario() -> None:
        keyring = Keyring(OURS)
        async with await db.connect(url) as connection:
            await store.create(connection, keyring, "Shop", seed=keyring.sandbox_seed(), at_ms=1)

    asyncio.run(scenario())


def test_the_first_start_makes_a_master_key(database_url: str, tmp_path: Path) -> None:
    asyncio.run(prepare_master_key(Settings(data=tmp_path), database_url))
    assert len((tmp_path / MASTER_KEY_FILE).read_text().strip()) == 64


def test_the_key_that_merchants_were_made_under_is_taken(database_url: str, tmp_path: Path) -> None:
    _open_merchant(database_url)
    asyncio.run(prepare_master_key(Settings(data=tmp_path, master_key=OURS), database_url))
    assert not (tmp_path / MASTER_KEY_FILE).exists()


def test_another_key_is_refused_by_its_name(database_url: str, tmp_path: Path) -> None:
    _open_merchant(database_url)
    with pytest.raises(ConfigError, match="WALLET_MASTER_KEY: The master key does not open"):
        asyncio.run(prepare_master_key(Settings(data=tmp_path, master_key=ANOTHER), database_url))


def test_a_key_is_proven_by_merchants_that_were_made_under_it(database_url: str, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, master_key=OURS)
    assert not asyncio.run(is_key_proven(settings, database_url))
    _open_merchant(database_url)
    assert asyncio.run(is_key_proven(settings, database_url))
    assert not asyncio.run(is_key_proven(Settings(data=tmp_path), database_url))
    with pytest.raises(ConfigError, match="The master key does not open"):
        asyncio.run(is_key_proven(Settings(data=tmp_path, master_key=ANOTHER), database_url))


def test_no_key_is_proven_by_a_database_without_tables(database_url: str, tmp_path: Path) -> None:
    with connect_sync(database_url) as connection:
        connection.execute("alter table merchant_secret rename to of_later")
    assert not asyncio.run(is_key_proven(Settings(data=tmp_path, master_key=OURS), database_url))


def test_a_lost_key_is_not_replaced_by_a_new_one(database_url: str, tmp_path: Path) -> None:
    _open_merchant(database_url)
    with pytest.raises(ConfigError, match="bring back the key"):
        asyncio.run(prepare_master_key(Settings(data=tmp_path), database_url))
    assert not (tmp_path / MASTER_KEY_FILE).exists()


def test_a_service_that_could_pay_on_no_chain_is_refused() -> None:
    with pytest.raises(ConfigError, match="WALLET_SANDBOX"):
        require_supported(Settings(sandbox=False))


def test_withdrawals_go_to_the_chains_that_have_a_node() -> None:
    nodes = ("http://127.0.0.1:1",)
    assert Settings().open_chains == ("ERC20", "TRC20")
    assert make_settings({"sandbox": False, "erc20_rpc": nodes}).open_chains == ("ERC20",)
    alone = make_settings({"sandbox": False, "trc20_rpc": nodes})
    assert alone.open_chains == ("TRC20",)
    require_supported(alone)
