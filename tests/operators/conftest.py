"""A database, a keyring and a moment for the tests of operators."""

from collections.abc import AsyncIterator

import pytest
from tests.operators.sign_in_scene import SignInScene, open_scene

from merchant_wallet.base.db import connect
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators.records import Connection

SHOP, OTHER = 1001, 1002


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(bytes(range(32)))


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[Connection]:
    async with await connect(database_url) as connection:
        for merchant_id in (SHOP, OTHER):
            await connection.execute(
                "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
                " values (%s, 'Shop', %s, 'KFB', 0)",
                [merchant_id, f"mk_{merchant_id}"],
            )
        yield connection


@pytest.fixture
async def scene(conn: Connection, keyring: Keyring) -> SignInScene:
    """Ann has signed in once, an hour ago."""
    return await open_scene(conn, keyring)
