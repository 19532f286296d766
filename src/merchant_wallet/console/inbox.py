"""The inbox: everything that waits for a person, who may act, since when, and where.

Rules:
- "For you" is what this user has to act on now, as the menu counts it. "All" has the rest too, with the
  reason why another must act, or nobody.
- A merchant's user sees its own book's items. Of the platform's people it learns no names.
- A kind shows the `MAX_SHOWN` items that have waited longest. Its count has all of them.
- The page reads everything anew each time. While it is visible, it requests its list again.
- Failed sign-ins end by nobody's act, so a person says that they were seen. What the page showed is noted,
  and not what has failed since.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.audit.failures import MAX_DAY, SeenDay, note_seen
from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console import flash
from merchant_wallet.console.inbox_cache import cache_of
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.operators import records
from merchant_wallet.operators.roles import Operator, Right
from merchant_wallet.reporting.inbox import (
    INFO,
    Group,
    Item,
    Source,
    Verdict,
    find_eligible_ms,
    judge,
    list_actors,
    list_waiting,
)
from merchant_wallet.web.actors import name_actors
from merchant_wallet.web.inbox_sources import BY_KIND
from merchant_wallet.web.languages import N_

INBOX: Final = "/console/inbox"
SEEN: Final = BY_KIND["sign-in"].seen
MINE: Final = "mine"
ALL: Final = "all"
MAX_NAMES: Final = 4
MAX_SHOWN: Final = 100
"""The most items of a kind on the page."""
MAX_DIGITS: Final = 18
NOTED: Final = N_("Noted as seen. If more fail, they are shown again.")
NOTHING_NEW: Final = N_("Somebody has seen these already. Nothing was changed.")
ENDS_ALONE: Final = N_("Nobody has to act: more deposits end it.")
WHY_NOT: Final = {
    Verdict.OWN: N_("Another person must act: you did the first step."),
    Verdict.TOO_LATE: N_("Its time has passed. It ends by itself."),
    Verdict.NO_RIGHT: N_("Your role may not act here."),
}


class ItemLine(msgspec.Struct, frozen=True):
    """One item as it is shown: `text` and `values` to translate, who may act, and why not this user.

    `names` are at most `MAX_NAMES` people, `more` is how many others may act. If nobody may, `next_name` may
    from `next_ms` on. `from_ms`: this user may act from then on. `seen_url` is where this user can say that
    the item was seen, or empty.
    """

    item: Item
    text: str
    values: dict[str, str]
    url: str
    seen_url: str
    is_mine: bool
    ends_alone: bool
    why_not: str
    from_ms: int | None
    names: tuple[str, ...]
    more: int
    next_name: str
    next_ms: int


class Section(msgspec.Struct, frozen=True):
    """The items of one kind. `lines` are those that are shown. `has_more`: at least `count` wait."""

    kind: str
    title: str
    tone: str
    lines: tuple[ItemLine, ...]
    count: int
    has_more: bool

    @property
    def total(self) -> str:
        """The count as people see it."""
        return f"{self.count}+" if self.has_more else str(self.count)


async def show_inbox(request: ConsoleRequest, conn: Connection) -> Response:
    """The whole page."""
    return request.page("console/inbox.html", active="inbox", is_part=False, **await _read(request, conn))


async def show_state(request: ConsoleRequest, conn: Connection) -> Response:
    """The list for an open page; empty if it has not changed."""
    shown = await _read(request, conn)
    if request.http.query_params.get("seen") == shown["version"]:
        return Response(status_code=204, headers=request.context.responses.headers())
    return request.part("console/inbox_state.html", is_part=True, **shown)


async def _read(request: ConsoleRequest, conn: Connection) -> dict[str, Any]:
    inbox = await cache_of(request.context).renew(request, conn)
    for name in inbox.away:
        request.cells.note_away(name, is_slow=name in inbox.slow)
    people = await list_people(request, conn)
    groups = {MINE: [_keep_mine(request, group) for group in inbox.groups], ALL: list(inbox.groups)}
    tab = _read_tab(request, groups[MINE])
    shown: dict[str, Any] = {
        "tab": tab,
        "sections": [_make_section(request, group, people) for group in groups[tab] if group.items],
        "counts": {name: _count(found) for name, found in groups.items()},
        "unread": ", ".join([request.translate(BY_KIND[kind].title) for kind in inbox.unread]),
    }
    seen = [shown, inbox.away, inbox.slow, inbox.at_ms // MINUTE_MS]
    version = hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:16]
    return shown | {"version": version, "at_ms": inbox.at_ms, "age": describe_age}


def _read_tab(request: ConsoleRequest, mine: Sequence[Group]) -> str:
    """The wanted tab; without a wish "for you", if anything is there."""
    wanted = request.http.query_params.get("show")
    if wanted in (MINE, ALL):
        return str(wanted)
    return MINE if any(group.items for group in mine) else ALL


async def list_people(request: ConsoleRequest, conn: Connection) -> list[Operator]:
    """The people whose names this user may see."""
    people = await records.list_everybody(conn)
    return [one for one in people if request.merchant_id in (None, one.merchant_id)]


def _count(groups: Sequence[Group]) -> str:
    count = sum(len(group.items) for group in groups)
    return f"{count}+" if any(group.has_more for group in groups) else str(count)


def _make_section(request: ConsoleRequest, group: Group, people: Sequence[Operator]) -> Section:
    source = BY_KIND[group.kind]
    lines = tuple([_make_line(request, source, item, people) for item in group.items[:MAX_SHOWN]])
    return Section(group.kind, source.title, source.tone, lines, len(group.items), group.has_more)


def _make_line(request: ConsoleRequest, source: Source, item: Item, people: Sequence[Operator]) -> ItemLine:
    verdict = judge(source, item, request.operator, request.at_ms)
    names = [one.name for one in list_actors(source, item, people, request.at_ms) if not source.ends_alone]
    waiting = [] if names or source.ends_alone else list_waiting(source, item, people, request.at_ms)
    is_early = verdict is Verdict.NOT_YET
    return ItemLine(
        item,
        source.texts[item.form],
        name_actors(item.values, request.translate),
        source.url_of(item),
        source.seen if verdict is Verdict.MAY else "",
        verdict is Verdict.MAY and not source.ends_alone,
        source.ends_alone,
        ENDS_ALONE if source.ends_alone else WHY_NOT.get(verdict, ""),
        find_eligible_ms(source, item, request.operator) if is_early else None,
        tuple(names[:MAX_NAMES]),
        max(0, len(names) - MAX_NAMES),
        waiting[0].name if waiting else "",
        find_eligible_ms(source, item, waiting[0]) if waiting else 0,
    )


def _keep_mine(request: ConsoleRequest, group: Group) -> Group:
    source = BY_KIND[group.kind]
    waiting = () if source.tone == INFO else group.items
    items = tuple(
        [one for one in waiting if judge(source, one, request.operator, request.at_ms) is Verdict.MAY]
    )
    return Group(group.kind, items, group.has_more and bool(items))


def describe_age(at_ms: int, since_ms: int) -> tuple[str, int]:
    """How long something has waited: an English text with the placeholder `count`, and the count. Pure."""
    age_ms = max(0, at_ms - since_ms)
    for least_ms, text in ((DAY_MS, N_("{count} d")), (HOUR_MS, N_("{count} h"))):
        if age_ms >= least_ms:
            return text, age_ms // least_ms
    return N_("{count} min"), age_ms // MINUTE_MS


async def note_failures_seen(request: ConsoleRequest, conn: Connection) -> Response:
    """Note that this user has seen the failed sign-ins that its page showed."""
    subject, (merchant_id, day, failures) = request.form.text("subject"), _read_numbers(request)
    seen = SeenDay(merchant_id, subject, day, failures)
    if not await note_seen(conn, request.author, seen):
        return request.redirect(INBOX, NOTHING_NEW, tone=flash.WARN)
    return request.redirect(INBOX, NOTED)


def _read_numbers(request: ConsoleRequest) -> tuple[int, int, int]:
    """The numbers of the form. Raises HTTPException 400."""
    texts = [request.form.text(name) for name in ("merchant", "day", "failures")]
    merchant_id, day, failures = [parse_digits(text, MAX_DIGITS) for text in texts]
    if merchant_id is None or day is None or failures is None or day > MAX_DAY:
        raise HTTPException(400)
    return merchant_id, day, failures


ROUTES: Final = (
    Page(INBOX, show_inbox, Right.READ, own_book=True),
    Page(SEEN, note_failures_seen, Right.MANAGE_OPERATORS, POST),
    Page(f"{INBOX}/state", show_state, Right.READ, own_book=True, extends_session=False),
)
