"""Sandbox and live mode: a database that was used in one mode is refused in the other."""

import asyncio
from pathlib import Path

import pytest

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.db import connect
from merchant_wallet.base.settings import Settings
from merchant_wallet.processes.base import prepare_master_key


async def open_merchant(url: str, *, with_account: bool) -> None:
    async with await connect(url) as connection:
        await connection.execute(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " values (1001, 'Shop', 'shop', 'KFB', 1)"
        )
        if with_account:
            await connection.execute(
                """insert into xpub_pool values (0, '{"ERC20": "x", "TRC20": "y"}', 1001)"""
            )


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_service_does_not_start_on_a_database_of_the_other_kind(
    database_url: str, tmp_path: Path, sandbox: bool
) -> None:
    asyncio.run(open_merchant(database_url, with_account=sandbox))
    settings = Settings(data=tmp_path, sandbox=sandbox, master_key=bytes(32))
    with pytest.raises(ConfigError, match="WALLET_SANDBOX"):
        asyncio.run(prepare_master_key(settings, database_url))
