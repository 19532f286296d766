"""What screening says: verdicts, and the reasons for them. Pure."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

MAX_TEXT: Final = 500


class Verdict(StrEnum):
    """What a source says of an address."""

    PASS = "pass"
    HOLD = "hold"
    REFUSE = "refuse"


class Source(StrEnum):
    """Who says it. The database, the command line and the pages have the same words."""

    LIST = "list"
    """The list in a file."""
    HOOK = "hook"
    """The screening URL."""
    AWAY = "away"
    """The screening URL gave no answer, and the setting lets the order or deposit pass."""
    AMOUNT = "payout-limit"
    COUNT = "payout-limit-count"
    FIRST = "first-payout-limit"
    """The first payout to this address."""


RULES: Final = frozenset({Source.AMOUNT, Source.COUNT, Source.FIRST})
"""The merchant's own rules for its payouts."""


class Reason(msgspec.Struct, frozen=True):
    """What one source said, in its own words or those of the rule. Only the platform's staff see it.

    `values` are those of a rule, so that a page can say it in other words.
    """

    source: Source
    verdict: Verdict
    text: str = ""
    values: dict[str, str] = {}


def worst(reasons: Iterable[Reason]) -> Verdict:
    """The strictest verdict: refuse before hold before pass."""
    verdicts = {reason.verdict for reason in reasons}
    return next((one for one in (Verdict.REFUSE, Verdict.HOLD) if one in verdicts), Verdict.PASS)


def describe(reasons: Iterable[Reason]) -> str:
    """The reasons that do not pass, as one line for operators."""
    told = [
        f"{one.source}: {one.text}" if one.text else str(one.source)
        for one in reasons
        if one.verdict != Verdict.PASS
    ]
    return "; ".join(told) or "no reason was given"


def tidy(text: str) -> str:
    """A text from elsewhere as database and terminal can take it."""
    return "".join(c if c.isprintable() else "?" for c in text.strip()[:MAX_TEXT])
