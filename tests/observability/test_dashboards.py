"""The dashboards: made from the table of panels, over metrics that exist."""

import json
import re
from typing import Any

import pytest
from scripts.documents.dashboards import COLUMNS, DASHBOARDS, write_dashboards

from merchant_wallet.observability.metric_table import METRICS, list_samples

FILES = write_dashboards()
OF_PROMETHEUS = {"ALERTS"}

by_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def read_panels(text: str) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(text)["panels"] if panel["type"] != "row"]


def list_expressions() -> list[str]:
    """Every query of every panel."""
    return [
        expression
        for dashboard in DASHBOARDS
        for row in dashboard.rows
        for panel in row.panels
        for expression, _ in panel.queries
    ]


@by_file
def test_a_file_is_what_its_table_says(path: Any) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path], "run `make docs`"


def test_queries_name_only_metrics_of_the_table() -> None:
    known = {name for line in METRICS for name in list_samples(line)} | OF_PROMETHEUS
    for expression in list_expressions():
        named = set(re.findall(r"\b(?:wallet_|process_|ALERTS)\w*", re.sub(r'"[^"]*"', "", expression)))
        assert named <= known, expression
        assert named, expression


def test_every_metric_with_an_alert_about_money_is_on_a_page() -> None:
    shown = " ".join(list_expressions())
    unseen = {"wallet_watcher_idle_seconds", "wallet_watcher_stopped", "wallet_reconciliation_sound"}
    unseen |= {"wallet_cell_rates_age_seconds", "wallet_book_ids_left", "wallet_rollback_evidence_found"}
    unseen |= {"wallet_platform_shown", "wallet_order_oldest_seconds", "wallet_callback_oldest_seconds"}
    unseen |= {"wallet_obstacle_oldest_seconds", "wallet_cell_unfollowed_seconds"}
    alarming = {line.name for line in METRICS if line.alerts and line.name.startswith("wallet_")}
    assert {name for name in alarming if name not in shown} <= unseen


@by_file
def test_each_panel_has_a_unit_a_text_and_the_chosen_source(path: Any) -> None:
    board = json.loads(FILES[path])
    assert board["templating"]["list"][0]["type"] == "datasource"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in read_panels(FILES[path]):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for target in panel["targets"]:
            assert (
                target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            )
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        values = [step["value"] for step in steps]
        assert values[0] is None
        assert values[1:] == sorted(values[1:])


@by_file
def test_panels_fill_their_rows_and_none_lies_over_another(path: Any) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(FILES[path])["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    height = max(y for _, y in taken) + 1
    assert len(taken) == height * COLUMNS, "no hole is left"
