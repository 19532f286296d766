"""Who is told of what, now. Pure.

Rules:
- A person is told of items that this person may act on, and of each item once per channel.
- In quiet hours a person is told only of kinds that wake. The rest is told when they end, if it still waits.
- Escalation: see `escalation`. Quiet hours take no time of the order: the next person is told instead.
- A message has everything that is new for its reader. After a message the next one waits for `GAP_MS`, or for
  `URGENT_GAP_MS` if something urgent is new. So a flood becomes a digest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.notifications.contacts import Choice, Contact
from merchant_wallet.operators.roles import Operator
from merchant_wallet.reporting.inbox import BAD, Inbox, Item, Source, list_actors

GAP_MS: Final = 600_000
URGENT_GAP_MS: Final = 60_000


class Reader(msgspec.Struct, frozen=True):
    """A person who wants to be told of something. Without `step_no` it is not in the order."""

    person: Operator
    contact: Contact
    choices: Mapping[str, Choice]
    step_no: int | None = None

    def is_reachable(self, kind: str, at_ms: int) -> bool:
        """Whether this person may be told of a kind now."""
        choice = self.choices.get(kind)
        return choice is not None and (choice.wakes or not self.contact.is_quiet(at_ms))

    def list_channels(self, kind: str) -> list[str]:
        """The channels by which this person is told of a kind."""
        choice = self.choices.get(kind)
        return [] if choice is None else [one for one in choice.channels if one in self.contact.targets]


class Told(msgspec.Struct, frozen=True):
    """A person was told of an item."""

    operator_id: int
    channel: str
    kind: str
    key: str
    told_ms: int
    gone_ms: int | None = None


class Line(msgspec.Struct, frozen=True):
    """An item in a message, as it is stored. `is_escalated`: nobody has acted, so the next person is told."""

    kind: str
    key: str
    form: str
    values: Mapping[str, str]
    since_ms: int
    link: str
    is_escalated: bool = False


class Planned(msgspec.Struct, frozen=True):
    """A message to one person by one channel."""

    operator_id: int
    channel: str
    target: str
    lines: tuple[Line, ...]


Last = Mapping[tuple[int, str], int]
"""The time of the last message, by operator and channel."""


class _Plan:
    """Collects what is new for each person and channel."""

    def __init__(self) -> None:
        self.lines: dict[tuple[int, str], list[Line]] = {}
        self.urgent: set[tuple[int, str]] = set()

    def add(self, place: tuple[int, str], line: Line, *, is_urgent: bool) -> None:
        self.lines.setdefault(place, []).append(line)
        if is_urgent:
            self.urgent.add(place)


def plan(
    inbox: Inbox,
    sources: Mapping[str, Source],
    readers: Sequence[Reader],
    times_s: Mapping[str, int],
    told: Iterable[Told],
    last: Last,
    at_ms: int,
) -> list[Planned]:
    """The messages that are due now."""
    by_item: dict[tuple[str, str], dict[tuple[int, str], int]] = {}
    for one in told:
        by_item.setdefault((one.kind, one.key), {})[one.operator_id, one.channel] = one.told_ms
    made = _Plan()
    for group in inbox.groups:
        source = sources[group.kind]
        for item in group.items:
            before = by_item.get((group.kind, item.key), {})
            _plan_item(made, source, item, readers, times_s.get(group.kind), before, at_ms)
    targets = {one.person.operator_id: one.contact.targets for one in readers}
    return [
        Planned(place[0], place[1], targets[place[0]][place[1]], tuple(lines))
        for place, lines in made.lines.items()
        if at_ms - last.get(place, 0) >= (URGENT_GAP_MS if place in made.urgent else GAP_MS)
    ]


def _plan_item(
    made: _Plan,
    source: Source,
    item: Item,
    readers: Sequence[Reader],
    after_s: int | None,
    before: Mapping[tuple[int, str], int],
    at_ms: int,
) -> None:
    may_act = {one.operator_id for one in list_actors(source, item, [r.person for r in readers], at_ms)}
    candidates = [
        one for one in readers if one.person.operator_id in may_act and one.list_channels(source.kind)
    ]
    for reader, is_escalated in _list_due(source.kind, candidates, after_s, before, at_ms):
        line = Line(
            source.kind,
            item.key,
            item.form,
            dict(item.values),
            item.since_ms,
            source.url_of(item),
            is_escalated,
        )
        for channel in reader.list_channels(source.kind):
            place = reader.person.operator_id, channel
            if place not in before:
                made.add(place, line, is_urgent=source.tone == BAD)


def _list_due(
    kind: str,
    candidates: Sequence[Reader],
    after_s: int | None,
    before: Mapping[tuple[int, str], int],
    at_ms: int,
) -> list[tuple[Reader, bool]]:
    """The people who are to know of an item by now, and whether each is told because nobody has acted."""
    reachable = [one for one in candidates if one.is_reachable(kind, at_ms)]
    if after_s is None:
        return [(one, False) for one in reachable]
    at_once = [(one, False) for one in reachable if one.step_no is None]
    knows = {operator_id for operator_id, _ in before}
    order = sorted(
        (one for one in candidates if one.step_no is not None),
        key=lambda one: one.step_no or 0,
    )
    steps = [one for one in order if one in reachable or one.person.operator_id in knows]
    in_order = {one.person.operator_id for one in order}
    first_ms = min((ms for (operator_id, _), ms in before.items() if operator_id in in_order), default=at_ms)
    reached = 1 + (at_ms - first_ms) // (after_s * 1000)
    due = [(one, number > 0) for number, one in enumerate(steps[:reached]) if one in reachable]
    return at_once + due
