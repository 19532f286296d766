"""The inbox: what waits for a person, and exactly who may act on it. Pure, apart from `read_inbox`.

Rules:
- A source lists its oldest items, up to the limit of whoever asks. If there are more, its count says so.
- An item has a key that stays the same while it waits.
- Whether a person may act follows from roles, four eyes and waiting periods, as where the person acts.
- With a merchant's id, only that merchant's items are listed, and only of kinds that merchants see.
- A cell that is away is named, and so is a kind that could not be read. Their items are missing.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
import psycopg
import structlog

from merchant_wallet.base.errors import TransientError
from merchant_wallet.book.actors import EVERYONE, person_of
from merchant_wallet.operators.roles import Operator, Right, Role, may
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection

log = structlog.get_logger("inbox")

MAX_ITEMS: Final = 1_000
"""The most items of a source that a page counts. Beyond it a count says "at least"."""
BAD: Final = "bad"
WARN: Final = "warn"
INFO: Final = "info"


class Asked(NamedTuple):
    """What a source reads from, and for whom: one merchant's people, or with None the platform's.

    `limit` is the most items of each source.
    """

    home: Connection
    cells: Reach
    merchant_id: int | None
    at_ms: int
    chains: Sequence[str]
    limit: int = MAX_ITEMS


class Item(msgspec.Struct, frozen=True):
    """One thing that waits for a person.

    `form` chooses one of the source's texts, `values` fill the text and the link. `done_by` are the actors
    who may not act, since they did the first step of two. `waits` has the people whose approvals of this item
    do not count before a time; `EVERYONE` stands for all. `right` replaces the source's right. After
    `until_ms` nobody can act.
    """

    key: str
    since_ms: int
    values: Mapping[str, str] = {}
    form: str = ""
    merchant_id: int | None = None
    merchant_name: str = ""
    amount_units: int | None = None
    currency: str = ""
    done_by: tuple[str, ...] = ()
    waits: Mapping[str, int] = {}
    right: Right | None = None
    until_ms: int | None = None


Read = Callable[[Asked], Awaitable[Sequence[Item]]]
"""Lists the oldest items, at most the limit and one more."""


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of item. `kind` is a word for URLs and settings, `title` an English text.

    `texts` are English texts with placeholders, by the item's form. `link` is where a person acts, with
    placeholders. `right` is what the platform's people need to act, `own_right` what the merchant's own
    people need. Without `own_right` and `is_shown_to_merchants` a merchant's person does not see the kind.
    With `is_own_alone` the platform's people do not. `counts_waits`: a person whose approvals do not count
    yet can't act. `tone` is `bad` if money or the service is at stake now. An `info` is not counted in the
    menu and is listed for nobody: nobody has to act. With `ends_alone` nobody can, and `right` says whom it
    concerns. `seen` is where a person sends an item's values to say that it was seen; empty for items that
    end by an act.
    """

    kind: str
    title: str
    texts: Mapping[str, str]
    link: str
    right: Right
    read: Read
    own_right: Right | None = None
    is_own_alone: bool = False
    is_shown_to_merchants: bool = False
    counts_waits: bool = False
    tone: str = WARN
    seen: str = ""
    ends_alone: bool = False

    def is_for(self, merchant_id: int | None) -> bool:
        """Whether people of this merchant, or with None of the platform, see the kind."""
        if merchant_id is None:
            return not self.is_own_alone
        return self.own_right is not None or self.is_shown_to_merchants

    def url_of(self, item: Item) -> str:
        """The path of the page where a person acts on an item."""
        return self.link.format(**{name: quote(value, safe="") for name, value in item.values.items()})


class Verdict(StrEnum):
    """Whether a person may act on an item, or why not."""

    MAY = "may"
    NO_RIGHT = "no right"
    OWN = "own"
    """Another person must act: this one did the first of two steps."""
    NOT_YET = "not yet"
    """The person's approvals do not count yet."""
    TOO_LATE = "too late"


class Group(msgspec.Struct, frozen=True):
    """The items of one kind, oldest first. `has_more`: there are more than are listed."""

    kind: str
    items: tuple[Item, ...]
    has_more: bool


class Inbox(msgspec.Struct, frozen=True):
    """What waits at one moment, without the cells that are `away` and the kinds that are `unread`.

    `slow` are those of the cells that answer, and too late.
    `partial` are the kinds that lack the items of cells that are away: not those of home alone.
    """

    at_ms: int
    groups: tuple[Group, ...] = ()
    away: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()

    @property
    def unknown(self) -> frozenset[str]:
        """The kinds of which an item may wait without being listed."""
        cut = {group.kind for group in self.groups if group.has_more}
        return frozenset(cut.union(self.unread, self.partial))

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.away and not self.unread


class Count(msgspec.Struct, frozen=True):
    """How many items a person may act on. `has_more`: at least so many. `is_bad`: some can't wait.

    `is_complete`: no cell was away and no kind could not be read.
    """

    items: int = 0
    has_more: bool = False
    is_bad: bool = False
    is_complete: bool = True

    @property
    def text(self) -> str:
        """The count as people see it. If something is missing, it says so."""
        if not self.is_complete:
            return f"{self.items}?"
        return f"{self.items}+" if self.has_more else str(self.items)


def judge(source: Source, item: Item, person: Operator, at_ms: int) -> Verdict:
    """Whether a person may act on an item now."""
    right, merchant_id = item.right or source.right, None
    if person.role == Role.MERCHANT:
        if source.own_right is None:
            return Verdict.NO_RIGHT
        right, merchant_id = source.own_right, item.merchant_id
    if not may(person, right, merchant_id):
        return Verdict.NO_RIGHT
    if item.until_ms is not None and at_ms > item.until_ms:
        return Verdict.TOO_LATE
    if person_of(person.actor) in {person_of(actor) for actor in item.done_by}:
        return Verdict.OWN
    if at_ms < find_eligible_ms(source, item, person):
        return Verdict.NOT_YET
    return Verdict.MAY


def find_eligible_ms(source: Source, item: Item, person: Operator) -> int:
    """From when on a person's approval of an item counts; 0 if always."""
    if not source.counts_waits:
        return 0
    own = [item.waits.get(name, 0) for name in (person_of(person.actor), EVERYONE)]
    return max(person.eligible_ms, *own)


def list_actors(source: Source, item: Item, people: Iterable[Operator], at_ms: int) -> list[Operator]:
    """The people who may act on an item now. Without a second factor nobody can sign in."""
    return _list_judged(source, item, people, at_ms, Verdict.MAY)


def list_waiting(source: Source, item: Item, people: Iterable[Operator], at_ms: int) -> list[Operator]:
    """The people who may act on an item later, the first of them first."""
    waiting = _list_judged(source, item, people, at_ms, Verdict.NOT_YET)
    return sorted(waiting, key=lambda one: find_eligible_ms(source, item, one))


def _list_judged(
    source: Source, item: Item, people: Iterable[Operator], at_ms: int, verdict: Verdict
) -> list[Operator]:
    return [one for one in people if one.enrolled and judge(source, item, one, at_ms) is verdict]


def count_for(inbox: Inbox, sources: Mapping[str, Source], person: Operator, at_ms: int) -> Count:
    """How many items wait for this person."""
    items, has_more, is_bad = 0, False, False
    for group in inbox.groups:
        source = sources[group.kind]
        if source.tone == INFO:
            continue
        mine = sum(judge(source, item, person, at_ms) is Verdict.MAY for item in group.items)
        items += mine
        has_more |= bool(mine) and group.has_more
        is_bad |= bool(mine) and source.tone == BAD
    return Count(items, has_more, is_bad, inbox.is_complete)


async def read_inbox(asked: Asked, sources: Iterable[Source]) -> Inbox:
    """Everything that waits, by kind, in the order of the sources."""
    groups, unread, partial = [], [], []
    for source in sources:
        if not source.is_for(asked.merchant_id):
            continue
        misses = asked.cells.misses
        found = await _read(source, asked)
        if asked.cells.misses > misses:
            partial.append(source.kind)
        if found is None:
            unread.append(source.kind)
        elif found:
            oldest = sorted(found, key=lambda item: (item.since_ms, item.key))
            groups.append(Group(source.kind, tuple(oldest[: asked.limit]), len(oldest) > asked.limit))
    cells = asked.cells
    return Inbox(asked.at_ms, tuple(groups), cells.away, tuple(unread), tuple(partial), cells.slow)


async def _read(source: Source, asked: Asked) -> Sequence[Item] | None:
    """A source's items. None if it fails: then the others are shown all the same."""
    try:
        return await source.read(asked)
    except TransientError as error:
        # A cell that is away is logged once by whoever finds out, and not for each kind and each merchant.
        log.debug("inbox source could not be read", kind=source.kind, reason=str(error))
    except psycopg.OperationalError as error:
        log.warning("inbox source could not be read", kind=source.kind, reason=str(error))
    except Exception:
        log.exception("inbox source could not be read", kind=source.kind)
    return None
