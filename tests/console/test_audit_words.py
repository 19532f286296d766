"""Every action that the code can write into the audit log has words, in both languages.

An action is found as a dotted constant, such as `"rate.set"`, or as a text with one gap, such as
`f"rate.{what}"`. What can stand in a gap is found in the calls that fill it. A new gap needs a row in `GAPS`.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import merchant_wallet
from merchant_wallet.audit.book_commands import name_act
from merchant_wallet.book.commands import Adjust, Approve, Cancel, Refund, WithdrawFees
from merchant_wallet.console.audit_words import (
    ACTIONS,
    PLAYED_STAGES,
    REQUESTS,
    SANDBOX_ACTIONS,
    STAGES,
    say_action,
)
from merchant_wallet.web.act_rights import ACT_RIGHTS
from merchant_wallet.web.languages import Language, read_words, translate
from merchant_wallet.web.proposal_rights import RIGHTS

SOURCE: Final = Path(merchant_wallet.__file__).parent
KNOWN: Final = ACTIONS.keys() | SANDBOX_ACTIONS.keys()
is_dotted = re.compile(r"[a-z_]+(\.[a-z_]+)+").fullmatch
has_gaps = re.compile(r"([a-z_]+|\{\})(\.([a-z_]+|\{\}))+").fullmatch
is_word = re.compile(r"[a-z_]+(\.[a-z_]+)?").fullmatch
may_have_form = re.compile(r"""["'}][a-z_]*\.(?:[a-z_]*["'.]|\{)""").search
"""Whether a source may have a dotted text, also one in several literals. Others are not parsed."""
OTHER_ENDS: Final = frozenset(
    {
        *(
            "age",
            "bki",
            "conf",
            "css",
            "csv",
            "gz",
            "history",
            "html",
            "json",
            "jsonl",
            "key",
            "lock",
            "log",
            "new",
            "opts",
            "password",
        ),
        *("pdf", "pid", "pub", "restoring", "signal", "sql", "svg", "ttf", "wal", "zip", "book"),
    }
)
"""How names of files end, and of a table in a schema."""
OTHER_KINDS: Final = frozenset(
    ("a", "http", "inbox", "merchant_wallet", "minutes", "postgres", "s", "service", "step", "uvicorn")
)
"""How names of columns, fields, modules, loggers, webhooks and attributes of traces begin."""
OTHERS: Final = frozenset(
    {
        *("wallet.attempt_no", "wallet.books", "wallet.code", "wallet.commands", "wallet.event_id"),
        *("wallet.merchant_id", "wallet.order_id", "wallet.process", "wallet.request_id"),
    }
)
"""Attributes of traces that begin like an action."""
NUMBERS: Final = frozenset(
    {
        *("audit/checkpointing/evidence_files.py", "base/atomic_files.py", "base/money.py"),
        *("base/setting_types.py", "cli/command_table.py", "console/notifications.py"),
        *("reporting/finance/network_fees.py", "sub_users/sessions.py"),
    }
)
"""Files that write numbers, names and tokens with a dot between two gaps."""


class Gap(NamedTuple):
    """Where the words of a gap are: constants in the calls of these functions, in these files."""

    files: str
    calls: frozenset[str]
    more: frozenset[str] = frozenset()
    but: frozenset[str] = frozenset()


def gap(files: str, *calls: str, more: str = "", but: str = "") -> Gap:
    """A gap; `more` are words that are no constants of the calls, `but` are other constants of theirs."""
    return Gap(files, frozenset(calls), frozenset(more.split()), frozenset(but.split()))


ADJUSTMENT: Final = gap("console/adjustments.py", "_record", "_redirect_with_outcome")
GAPS: Final = {
    ("console/adjustments.py", "adjustment.{}"): ADJUSTMENT,
    ("approvals/proposals.py", "adjustment.{}"): ADJUSTMENT,
    ("merchants/cells/moves.py", "cell.move.{}"): gap("merchants/cells/*.py", "record_move", "end"),
    ("merchants/cells/book_moves.py", "merchant.move.{}"): gap("merchants/cells/*.py", "_record", "end"),
}
"""Texts with a gap at their end, by file."""
STAGED: Final = {
    ("approvals/acts/asked.py", "{}.{}"): "failed lapsed",
    ("approvals/changes.py", "{}.{}"): "refuse withdraw",
}
"""Texts that are an action and a stage, both of which are gaps, with the stages there are."""


def read(pattern: str) -> Iterator[tuple[str, str]]:
    """The sources of a pattern, with their paths."""
    for path in sorted(SOURCE.glob(pattern)):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def is_other(form: str) -> bool:
    """Whether a dotted text is certainly no action."""
    kind, end = form.partition(".")[0], form.rpartition(".")[2]
    return end in OTHER_ENDS or kind in OTHER_KINDS or form in OTHERS


@cache
def list_forms() -> frozenset[tuple[str, str]]:
    """Each dotted constant and dotted text with gaps that may be an action, with its file."""
    found = set()
    for name, source in read("**/*.py"):
        for node in ast.walk(ast.parse(source)) if may_have_form(source) else ():
            form = read_form(node)
            if form and not is_other(form) and name != "console/audit_words.py":
                found.add((name, form))
    return frozenset(found)


def read_form(node: ast.AST) -> str:
    """A dotted constant, or a dotted text with its gaps as `{}`; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_dotted(node.value):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return ""
    form = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return form if has_gaps(form) else ""


def list_words(gap: Gap) -> set[str]:
    """The words that calls put into a gap."""
    found = set(gap.more)
    for _, source in read(gap.files):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and name_function(node) in gap.calls:
                found |= {word for given in node.args for word in read_words_of(given)}
    return found - gap.but


def name_function(call: ast.Call) -> str:
    """The name of the called function or method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def read_words_of(given: ast.expr) -> Iterator[str]:
    """The words that an argument can be: a constant, or one of two."""
    if isinstance(given, ast.IfExp):
        yield from (*read_words_of(given.body), *read_words_of(given.orelse))
    elif isinstance(given, ast.Constant) and isinstance(given.value, str) and is_word(given.value):
        yield given.value


@cache
def list_actions() -> frozenset[str]:
    """Every action that the code can write."""
    whole = {form for _, form in list_forms() if "{}" not in form}
    words = {form: list_words(gap) for (_, form), gap in GAPS.items()}
    filled = {form.format(word) for form, found in words.items() for word in found}
    return frozenset(whole.difference(*words.values()) | filled)


def test_every_action_that_the_code_can_write_has_words_in_both_languages() -> None:
    assert len(list_actions()) > 100
    for language in Language:
        said = {action: say_action(action, partial(translate, language)) for action in list_actions()}
        assert [action for action, words in said.items() if words == action] == []
    texts = (*ACTIONS.values(), *REQUESTS.values(), *STAGES.values(), *PLAYED_STAGES.values())
    assert [text for text in texts if text not in read_words()] == []


def test_what_is_asked_for_or_proposed_is_said_as_not_done_yet() -> None:
    of_books = {
        name_act(1001, command).action
        for command in (
            *(Approve(1, "ann"), Cancel(1, "ann"), Refund(1), WithdrawFees("USDT", None, "why", "ann")),
            *(Adjust("USDT", units, "why", "ann", None) for units in (1, -1)),
        )
    }
    of_cells = {
        form for name, form in list_forms() if name in ("callbacks/acts.py", "sub_users/audit_log.py")
    }
    assert of_books | of_cells | RIGHTS.keys() | ACT_RIGHTS.keys() | {"adjustment.accept"} == REQUESTS.keys()
    assert [action for action, words in REQUESTS.items() if words == ACTIONS[action]] == []


def test_no_words_are_left_of_an_action_that_nothing_writes() -> None:
    assert KNOWN - list_actions() == set()


def test_every_gap_in_an_action_is_known_and_every_stage_has_words() -> None:
    gaps = {(name, form) for name, form in list_forms() if "{}" in form}
    stages = {(name, form) for name, form in gaps if form.startswith("{}.") and form != "{}.{}"}
    assert {form.removeprefix("{}.") for _, form in stages} <= STAGES.keys()
    pairs = {(name, form) for name, form in gaps if form == "{}.{}" and name not in NUMBERS}
    assert pairs == STAGED.keys()
    assert {stage for words in STAGED.values() for stage in words.split()} <= STAGES.keys()
    assert gaps - stages - pairs - {(name, "{}.{}") for name in NUMBERS} == GAPS.keys()


def test_an_action_without_words_would_be_found() -> None:
    told = 'record("widget.create")', 'record(f"widget.{what}")', 'record("widget." "drop")'
    assert all(map(may_have_form, told))
    assert not may_have_form('record("Widget")\nwidget.create()')
    module = ast.parse("\n".join((*told, 'read("widget.sql")', 'record("Widget")')))
    assert [form for node in ast.walk(module) if (form := read_form(node)) and not is_other(form)] == [
        "widget.create",
        "widget.{}",
        "widget.drop",
    ]
    assert say_action("widget.create", partial(translate, Language.EN)) == "widget.create"
