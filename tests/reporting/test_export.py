"""Rows of statements in CSV and JSON lines."""

import csv
import io
import json

from tests.rows import each_row

from merchant_wallet.base.currencies import KFB
from merchant_wallet.reporting.export import COLUMNS, render_csv, render_csv_header, render_jsonl
from merchant_wallet.reporting.statements import StatementRow

ROW = StatementRow(9, 5, "exchange", 'a,"b"', "merchant:KFB", "exchange:KFB", KFB, -1_500_000, 20)


def test_a_statement_is_rendered_as_csv() -> None:
    text = render_csv_header() + render_csv(ROW)
    header, cells = csv.reader(io.StringIO(text, newline=""))
    assert header == list(COLUMNS)
    assert cells[3:] == ['a,"b"', "merchant:KFB", "exchange:KFB", "KFB", "-1.5", "0.00002"]
    assert text.count("\r\n") == 2


@each_row("first", "=+-@\t")
def test_an_order_id_never_becomes_a_formula_in_a_spreadsheet(first: str) -> None:
    row = StatementRow(9, 5, "exchange", first + "1+1", "merchant:KFB", "exchange:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == f"'{first}1+1"
    assert json.loads(render_jsonl(row))["mcOrderId"] == first + "1+1"


@each_row(
    ("order_id", "shown"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a; =1+1;@x", "a;' =1+1;'@x"),
        ("\uff1d1+1", "'\uff1d1+1"),
        (" \uff0b1", "' \uff0b1"),
        ("a;\uff0d1", "a;'\uff0d1"),
        ("a;\uff20x", "a;'\uff20x"),
        ("a=1;b-1", "a=1;b-1"),
        ("2026-11-22", "2026-11-22"),
    ],
)
def test_neither_a_semicolon_nor_a_full_width_sign_lets_a_formula_in(order_id: str, shown: str) -> None:
    row = StatementRow(9, 5, "exchange", order_id, "merchant:KFB", "exchange:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == shown
    assert json.loads(render_jsonl(row))["mcOrderId"] == order_id


@each_row("order_id", ['a;"=1+1&";b', ';""=1+1', 'a; "@x";', '";=1+1&"', 'x;"\uff1d1"'])
def test_a_quotation_mark_does_not_hide_a_formula_where_cells_end_at_semicolons(order_id: str) -> None:
    row = StatementRow(9, 5, "exchange", order_id, "merchant:KFB", "exchange:KFB", KFB, 1, 20)
    for cell in next(csv.reader([render_csv(row)], delimiter=";")):
        assert not cell.lstrip(' "').startswith(("=", "+", "-", "@", "\uff1d")), cell


def test_a_statement_is_rendered_as_json_lines() -> None:
    text = render_jsonl(ROW)
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "entryId": 9,
        "atMs": 5,
        "kind": "exchange",
        "mcOrderId": 'a,"b"',
        "account": "merchant:KFB",
        "counterAccount": "exchange:KFB",
        "currency": "KFB",
        "amount": "-1.5",
        "balance": "0.00002",
    }


def test_an_entry_without_an_order_id_renders_it_as_absent() -> None:
    row = StatementRow(9, 5, "adjust", None, "merchant:KFB", "adjustment:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == ""
    assert json.loads(render_jsonl(row))["mcOrderId"] is None
