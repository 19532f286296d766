"""A connection to a database with two merchants' books, for tests on the event loop."""

from collections.abc import AsyncIterator

import pytest
from tests.sub_users.books import OTHER, SHOP, Connection, open_book

from merchant_wallet.base.db import connect


@pytest.fixture
def anyio_backend() -> str:
    """asyncio alone."""
    return "asyncio"


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[Connection]:
    """The connection; both books are empty."""
    async with await connect(database_url) as connection:
        for merchant_id in (SHOP, OTHER):
            await open_book(connection, merchant_id)
        yield connection
