"""The page on debugging: its queries run, its log lines are written, its pictures are the tables'."""

import re
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from scripts.documents.story import Story
from scripts.site import flows
from scripts.site.drawings import write_flows
from scripts.site.svg import Arrow
from tests.rows import each_row

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
QUERIES: Final = dict(re.findall(r"^### (\d+)\. [^\n]+\n\n```sql\n(.+?);\n```$", PAGE, re.M | re.S))
FINDS_SOMETHING: Final = ("1", "2", "3", "4", "5", "7", "8")
"""After the story, which has a paid withdrawal and a deposit, these have rows."""


def translate(query: str) -> str:
    """A query with psycopg's placeholders in place of psql's variables."""
    return re.sub(r"(?<!:):'?([a-z]+(?:_[a-z]+)*)'?", r"%(\1)s", query.replace("%", "%%"))


@pytest.fixture(scope="module")
def names(story: Story, story_database: str) -> dict[str, Any]:
    """What a person puts into the queries: a paid order of the story, and a deposit of its merchant."""
    with psycopg.connect(story_database) as connection:
        row = connection.execute(
            "select w.merchant_id, w.order_id, w.mc_order_id, d.tx_hash from withdrawal w "
            "join payout_signed using (merchant_id, order_id) join callback using (merchant_id, order_id) "
            "join deposit d using (merchant_id) limit 1"
        ).fetchone()
    assert row is not None
    return dict(zip(("merchant_id", "order_id", "mc_order_id", "tx_hash"), row, strict=True))


def test_there_are_ten_queries() -> None:
    assert list(QUERIES) == [str(number) for number in range(1, 11)]


def test_each_query_runs_and_finds_what_the_story_left(names: dict[str, Any], story_database: str) -> None:
    with psycopg.connect(story_database) as connection:
        connection.read_only = True
        found = {
            number: connection.execute(translate(query).encode(), names).fetchall()
            for number, query in QUERIES.items()
        }
    assert [number for number in FINDS_SOMETHING if not found[number]] == []


def test_each_log_line_of_the_page_is_written() -> None:
    code = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    events = re.findall(r"^\| `([^`]+)` \|", PAGE, re.M) + re.findall(r"`(deposit [a-z]+)`", PAGE)
    assert len(events) > 15
    assert [event for event in events if f'"{event}"' not in code] == []


def test_each_picture_is_what_the_tables_give_now() -> None:
    stale = [path.name for path, text in write_flows().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


@each_row("name", ("_ORDER_STEPS", "_ACTION_STEPS", "_CALLBACK_STEPS", "_DEPOSIT_STEPS"))
def test_a_picture_without_one_of_the_steps_is_not_drawn(name: str) -> None:
    arrows: dict[Any, Arrow] = dict(getattr(flows, name))
    arrows.popitem()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, name, arrows)
        draw = flows.draw_deposit if name == "_DEPOSIT_STEPS" else flows.draw_withdrawal
        with pytest.raises(flows.StepNotDrawn):
            draw()
