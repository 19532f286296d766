"""Which names of its query a page asks for: the service of the tests' own process tells."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from starlette import requests
from starlette.datastructures import QueryParams


class WatchedQuery(QueryParams):
    """A query that records which names a page asks for."""

    asked: ClassVar[set[str]] = set()

    def __getitem__(self, key: Any) -> str:
        self.asked.add(key)
        return str(super().__getitem__(key))

    def __contains__(self, key: Any) -> bool:
        self.asked.add(key)
        return super().__contains__(key)

    def getlist(self, key: Any) -> list[str]:
        self.asked.add(key)
        return super().getlist(key)


@pytest.fixture
def watched_query() -> Iterator[type[WatchedQuery]]:
    """Queries are watched while a test runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "QueryParams", WatchedQuery)
        WatchedQuery.asked.clear()
        yield WatchedQuery
