"""Fixtures for the tests of merchants."""

from collections.abc import AsyncIterator

import pytest

from merchant_wallet.base.db import connect
from merchant_wallet.merchants.store import Connection


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[Connection]:
    async with await connect(database_url) as connection:
        yield connection
