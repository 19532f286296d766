"""Every table of the command line, on narrow and wide terminals: no amount, id, hash or address is broken."""

import importlib
import io
import pkgutil
import re
import types
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Wallet

from merchant_wallet import cli
from merchant_wallet.cli.program import app, load_all_commands
from merchant_wallet.cli.terminal import Table, lay_out, name_titles, print_records, show_duration, show_value

WIDTHS = (60, 80, 100, 200)
NO_TABLES = {"archive list"}
"""It prints through `archive_tools`, as its siblings do."""
ID, MOMENT_MS = 9_007_199_254_740_991, 1_764_412_800_123
AMOUNT, HASH, ADDRESS = "-10000000.000001", "0x" + "5f" * 32, "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
SENTENCE = f"the address {ADDRESS} of the amount 12.5 was not found on any node, and a person must look"
"""Values as long as they come."""


def find_commands(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its words."""
    for name, command in tree.commands.items():
        if hasattr(command, "commands"):
            yield from find_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def find_tables() -> dict[str, Table]:
    modules = [
        importlib.import_module(f"{cli.__name__}.{one.name}") for one in pkgutil.iter_modules(cli.__path__)
    ]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Table)
    }


def names_in(code: types.CodeType) -> set[str]:
    """The global names that a function and those inside it use."""
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def make_rows(table: Table) -> list[dict[str, Any]]:
    """Rows of which each value is one after another everything that a column may hold."""
    values = (ID, AMOUNT, HASH, ADDRESS, SENTENCE, None)
    fixed: dict[str, Any] = {name: MOMENT_MS for name in table.columns if name.endswith("Ms")}
    fixed |= {name: "0.00000001" for name in table.columns if name.endswith("Percent")}
    return [
        {name: values[(at + place) % len(values)] for place, name in enumerate(table.columns)} | fixed
        for at in range(len(values))
    ]


def check(table: Table, rows: list[dict[str, Any]], width: int | None) -> None:
    lines, left_out = lay_out(table, rows, width)
    text = "\n".join(lines)
    assert set(left_out) < set(table.columns)
    for row in rows:
        for name in set(table.columns) - set(left_out):
            for piece in [row[name]] if isinstance(row[name], int) else str(row[name] or "none").split():
                assert show_value(name, piece) in text, (name, piece, width)
    titles = name_titles(table.columns)
    assert len(set(titles.values())) == len(titles), "two columns have one title"
    is_table = all(titles[name] in lines[0].split() for name in set(table.columns) - set(left_out))
    if width is not None and is_table and len(table.columns) > 1:
        assert max(map(len, lines)) <= width
    if width is None:
        assert not left_out
        assert len(lines) == 2 + len(rows), "a pipe gets one line for each row"


def test_no_table_of_any_command_breaks_a_value_at_any_width() -> None:
    tables = find_tables()
    for name, table in tables.items():
        assert set(table.spare) < set(table.columns), name
        for width in (*WIDTHS, None):
            check(table, make_rows(table), width)
            # Short values show the other form: a table.
            check(table, [dict.fromkeys(table.columns, "12.5")], width)


def test_every_list_has_its_columns_where_the_test_above_finds_them() -> None:
    commands = dict(find_commands(load_all_commands()))
    lists = {words: one for words, one in commands.items() if words.split()[-1] == "list"}
    assert len(lists) > 12
    for words, command in lists.items():
        function = (
            command.callback.__wrapped__ if hasattr(command.callback, "__wrapped__") else command.callback
        )
        used = {function.__globals__.get(name) for name in names_in(function.__code__)}
        assert words in NO_TABLES or any(isinstance(one, Table) for one in used), words
    for file in Path(cli.__file__).parent.glob("*.py"):
        for line in file.read_text().splitlines():
            assert "Table(" not in line or re.match(
                r"(\w+(: Final)? = terminal\.Table\()|class Table|.*isinstance", line
            )


def test_a_narrow_terminal_leaves_columns_out_says_so_and_prints_records_when_that_is_not_enough() -> None:
    table = Table("orderId", "amount", "fee", "txHash", spare=("fee",))
    rows = [{"orderId": 1, "amount": "10000000.5", "fee": "1000", "txHash": HASH}]
    assert lay_out(table, rows, 92) == (
        [
            "orderId  amount      txHash",
            f"{'─' * 7}  {'─' * 10}  {'─' * 66}",
            f"1        10000000.5  {HASH}",
        ],
        ("fee",),
    )
    assert lay_out(table, rows * 2, 60) == (
        (record := ["orderId  1", "amount   10000000.5", "fee      1000", f"txHash   {HASH}"])
        + ["", *record],
        (),
    )


def test_only_sentences_are_wrapped_and_only_at_spaces() -> None:
    lines, _ = lay_out(Table("id", "cause"), [{"id": ID, "cause": SENTENCE}], 60)
    assert [line[18:] for line in lines[2:]] == [
        "the address",
        f"{ADDRESS} of the",
        "amount 12.5 was not found on any node, and",
        "a person must look",
    ]
    assert all(len(line) <= 60 for line in lines)


class Screen(io.StringIO):
    """A terminal's output."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [80, 200])
def test_a_list_knows_the_width_of_its_terminal(
    wallet: Wallet, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    merchant_id = wallet.open_merchant("A merchant that is 商户商户")
    for name, value in {**wallet.variables, "COLUMNS": str(width)}.items():
        monkeypatch.setenv(name, value)
    with redirect_stdout(Screen()) as screen, redirect_stderr(io.StringIO()) as notes:
        app(["merchant", "list"], standalone_mode=False)
    (key,) = {one["appKey"] for one in wallet.ask("merchant", "list")["merchants"]}
    assert key in screen.getvalue()
    assert ("currencyMode" in screen.getvalue()) == (width == 200)
    assert ("Left out, the terminal is too narrow: currencyMode, created." in notes.getvalue()) == (
        width == 80
    )
    assert str(merchant_id) in screen.getvalue()


def test_when_a_month_was_closed_is_a_moment_and_how_long_a_book_was_closed_a_duration() -> None:
    assert (
        show_value("closedMs", MOMENT_MS) == show_value("preparedMs", MOMENT_MS) == "2025-11-29 10:40:00.123Z"
    )
    assert show_duration({"done": "moved", "closedMs": 950}, "closedMs") == {
        "done": "moved",
        "closedMs": "950 ms",
    }
    assert show_duration({"done": "undone"}, "closedMs") == {"done": "undone"}


def test_titles_have_no_unit_since_the_values_have_theirs() -> None:
    table = Table("createdMs", "latencyMillis", "hot", "hotMs")
    row = {"createdMs": MOMENT_MS, "latencyMillis": 12, "hot": "5", "hotMs": MOMENT_MS}
    lines, _ = lay_out(table, [row], None)
    assert lines[0].split() == ["created", "latency", "hot", "hotAt"]
    assert lines[2] == "2025-11-29 10:40:00.123Z  12 ms    5    2025-11-29 10:40:00.123Z"
    narrow, _ = lay_out(table, [row], 20)
    assert [line.split()[0] for line in narrow] == ["created", "latency", "hot", "hotAt"]


@pytest.mark.parametrize("answer", ["ok", f"<html>{SENTENCE * 9}"])
def test_attempts_have_one_form_whatever_their_answers_hold(answer: str) -> None:
    row = {"attemptNo": 1, "error": None, "answer": answer}
    with redirect_stdout(io.StringIO()) as shown:
        print_records(Table(*row), [row, row])
    record = ["attemptNo  1", f"answer     {answer}"]
    assert shown.getvalue().splitlines() == [*record, "", *record]


def test_a_command_is_never_wrapped() -> None:
    row = {"kind": "order", "command": "merchant-wallet withdrawals show 8589934595 --data w1"}
    lines, _ = lay_out(Table("kind", "command"), [row], 50)
    assert any(row["command"] in line for line in lines)


def test_what_belongs_to_names_is_told_in_words() -> None:
    assert show_value("roles", {"web": "wallet_web", "worker": None}) == "web wallet_web, worker none"
    assert show_value("roles", {}) == "none"
