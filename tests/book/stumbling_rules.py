"""Rules that raise, in place of the book's own."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.rules import RULES
from merchant_wallet.book.state import Draft

Rule = Callable[[Draft, Any], Outcome]


def set_rule(monkeypatch: pytest.MonkeyPatch, kind: type[Command], rule: Rule) -> None:
    """Judge commands of this kind by this rule until the test ends."""
    monkeypatch.setitem(cast(dict[object, object], RULES), kind, rule)


def make_stumbling_rule(kind: type[Command], is_poison: Callable[[Any], bool]) -> Rule:
    """The book's rule, but for a poisoned command it raises, and only after it has changed the draft."""
    judge = RULES[kind]

    def judge_but_stumble(draft: Draft, command: Any) -> Outcome:
        outcome = judge(draft, command)
        assert not is_poison(command)
        return outcome

    return judge_but_stumble
