"""What the dashboards are made of: pages, rows, and panels. Pure.

Rules:
- Expressions name only metrics of the table, and add up or take the highest over processes.
- Colours mean something: green is right, orange is worth a look, red needs a person. Series that are neither
  good nor bad have the palette's colours.
- A panel's text says what a person who sees it for the first time must know.
"""

from typing import Any, Final, NamedTuple

RATE: Final = "$__rate_interval"
GREEN: Final = "green"
ORANGE: Final = "orange"
RED: Final = "red"

Steps = tuple[tuple[float, str], ...]
"""From which value on a colour holds. Below the first it is green."""
BAD_ABOVE_0: Final[Steps] = ((1, RED),)


class Panel(NamedTuple):
    """One panel. `queries` are expressions with their legends. `steps`: see `Steps`. Width is of 24."""

    title: str
    queries: tuple[tuple[str, str], ...]
    text: str
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    steps: Steps = ()
    stacks: bool = False
    names: tuple[tuple[str, str], ...] = ()
    """Words for values, such as 0 and 1."""


class Row(NamedTuple):
    """Panels below a heading."""

    title: str
    panels: tuple[Panel, ...]


class Dashboard(NamedTuple):
    """One page."""

    uid: str
    title: str
    text: str
    rows: tuple[Row, ...]


def tile(title: str, expression: str, text: str, steps: Steps = BAD_ABOVE_0, **how: Any) -> Panel:
    """A number with a colour."""
    return Panel(title, ((expression, ""),), text, kind="stat", width=4, steps=steps)._replace(**how)


FIRING: Final = tile(
    "Alerts that fire",
    'count(ALERTS{alertname=~"Wallet.+", alertstate="firing"}) or vector(0)',
    "Rules of docs/alerts.yml. The runbook has a heading for each.",
)
