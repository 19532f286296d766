"""The dashboards as Grafana's JSON, made from the table of panels by `make docs`. Pure.

Rules:
- The data source is a variable, so a dashboard can be imported anywhere.
- Panels fill rows of 24 columns from left to right.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.documents.machine_panels import MACHINES
from scripts.documents.money_panels import MONEY
from scripts.documents.panels import GREEN, Dashboard, Panel, Row

FOLDER: Final = Path(__file__).parent.parent.parent / "deploy" / "grafana"
DASHBOARDS: Final = (MONEY, MACHINES)
SCHEMA_VERSION: Final = 39
COLUMNS: Final = 24
TILE_HEIGHT: Final = 4
HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, Any]


def write_dashboards() -> dict[Path, str]:
    """Each file's text."""
    return {
        FOLDER / f"{one.uid.removeprefix('wallet-')}.json": json.dumps(_make(one), indent=2) + "\n"
        for one in DASHBOARDS
    }


def _make(dashboard: Dashboard) -> Json:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.text,
        "tags": ["merchant-wallet"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                    "hide": 0,
                }
            ]
        },
        "links": [
            {
                "title": "merchant-wallet",
                "type": "dashboards",
                "tags": ["merchant-wallet"],
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
                "icon": "external link",
                "url": "",
                "tooltip": "",
            }
        ],
        "annotations": {"list": []},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_list_panels(dashboard.rows), 1)],
    }


def _list_panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    y = 0
    for row in rows:
        yield {
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }
        y, x = y + 1, 0
        height = TILE_HEIGHT if row.panels[0].kind == "stat" else HEIGHT
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y = 0, y + height
            yield {**_make_panel(panel), "gridPos": {"x": x, "y": y, "w": panel.width, "h": height}}
            x += panel.width
        y += height


def _make_panel(panel: Panel) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": expression,
                "legendFormat": legend or "__auto",
                "range": panel.kind != "stat",
                "instant": panel.kind == "stat",
            }
            for number, (expression, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _make_defaults(panel), "overrides": []},
        "options": _make_options(panel),
    }


def _make_defaults(panel: Panel) -> Json:
    steps = [{"color": GREEN, "value": None}, *({"color": color, "value": at} for at, color in panel.steps)]
    if panel.steps and panel.steps[0][0] == 0:
        # What is below the first step has its colour.
        steps = [{"color": panel.steps[0][1], "value": None}, *steps[2:]]
    is_tile = panel.kind == "stat"
    named = {value: {"text": word, "index": index} for index, (value, word) in enumerate(panel.names)}
    defaults: Json = {
        "unit": panel.unit,
        "color": {"mode": "thresholds" if is_tile and panel.steps else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [{"type": "value", "options": named}] if named else [],
    }
    if is_tile:
        return defaults
    return {
        **defaults,
        "min": 0 if panel.unit in ("s", "reqps", "ops", "percentunit", "bytes") else None,
        "custom": {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 20 if panel.stacks else 0,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacks else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if panel.steps else "off"},
        },
    }


def _make_options(panel: Panel) -> Json:
    if panel.kind == "stat":
        return {
            "colorMode": "background_solid" if panel.steps else "value",
            "graphMode": "none",
            "justifyMode": "center",
            "textMode": "value",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
