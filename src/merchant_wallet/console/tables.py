"""The state of a table, all in the URL: filters, sort order, and the page's key. Pure.

Rules: unknown parameters are ignored. With another sort order or filter the table begins at the first page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

SORT: Final = "sort"
AFTER: Final = "after"
DESCENDING: Final = "-"
MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table. `sort` is a column's name, with `-` before it for descending order.

    `filters` has the given texts, `several` those of filters with more than one value.
    """

    path: str
    filters: Mapping[str, str]
    several: Mapping[str, Sequence[str]]
    sort: str
    default_sort: str
    after: str | None

    @property
    def column(self) -> str:
        """The column to sort by."""
        return self.sort.removeprefix(DESCENDING)

    @property
    def descending(self) -> bool:
        """Whether the order is descending."""
        return self.sort.startswith(DESCENDING)

    @property
    def is_filtered(self) -> bool:
        """Whether rows are left out: then an empty table does not mean that there are none."""
        return bool(self.filters or self.several)

    def get(self, name: str) -> str:
        """A filter's text, empty if it is not set."""
        return self.filters.get(name, "")

    def has(self, name: str, value: str) -> bool:
        """Whether a filter with several values has this one."""
        return value in self.several.get(name, ())

    def sorted_by(self, column: str) -> str:
        """The URL to sort by a column, in the reverse order if it is sorted by it already."""
        turned = self.column == column and not self.descending
        return self._url(self.filters, self.several, f"{DESCENDING}{column}" if turned else column)

    def page_after(self, key: str) -> str:
        """The URL of the next or previous page, by its key."""
        return self._url(self.filters, self.several, self.sort, {AFTER: key})

    @property
    def first(self) -> str:
        """The URL of the first page."""
        return self._url(self.filters, self.several, self.sort)

    @property
    def cleared(self) -> str:
        """The URL without filters."""
        return self._url({}, {}, self.sort)

    def _url(
        self,
        filters: Mapping[str, str],
        several: Mapping[str, Sequence[str]],
        sort: str,
        key: Mapping[str, str] | None = None,
    ) -> str:
        pairs = [*filters.items(), *((name, value) for name, values in several.items() for value in values)]
        if sort != self.default_sort:
            pairs.append((SORT, sort))
        pairs.extend((key or {}).items())
        return f"{self.path}?{urlencode(pairs)}" if pairs else self.path


def read_state(
    path: str,
    query: QueryParams,
    *,
    sorts: Iterable[str] = (),
    default_sort: str = "",
    filters: Iterable[str] = (),
    several: Iterable[str] = (),
) -> TableState:
    """The state from a URL's query. `sorts` are the allowed columns."""
    wanted = query.get(SORT, default_sort)
    known = wanted == default_sort or wanted.removeprefix(DESCENDING) in set(sorts)
    given = {name: _clean(query.get(name, "")) for name in filters}
    lists = {name: tuple(filter(None, map(_clean, query.getlist(name)))) for name in several}
    return TableState(
        path=path,
        filters={name: text for name, text in given.items() if text},
        several={name: values for name, values in lists.items() if values},
        sort=wanted if known else default_sort,
        default_sort=default_sort,
        after=query.get(AFTER, "").replace("\0", "") or None,
    )


def _clean(text: str) -> str:
    return text.replace("\0", "").strip()[:MAX_TEXT]
