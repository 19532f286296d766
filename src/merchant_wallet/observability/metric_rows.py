"""What the table of metrics is made of: a metric, and the alerts that say when it is wrong. Pure.

Rules:
- A metric's "wrong when" is the text of its alerts. So the documents, the alert rules and the runbook can't
  differ.
- `page` wakes a person: money or requests stand still. `ticket` waits for working hours.
- An expression of an alert names only metrics of the table. What it adds up or compares, it adds up and
  compares within one installation: `divide` says so in each aggregation and match. A rule about one process
  keeps its labels.
- Each alert says what is so, with labels, value and unit; what that means for merchants; and the first step.
- A step that is a command has what the command requires, so that it can be typed.
"""

import re
from typing import Final, Literal, NamedTuple

Severity = Literal["page", "ticket"]

NOW: Final = "0m"
INSTALLATION: Final = ("job", "installation")
"""The labels of targets that tell installations apart. The second one is optional."""
_AGGREGATION: Final = re.compile(r"\b(max|min|sum|count)(?: by \(([\w, ]*)\))? ?\(")
_MATCH: Final = re.compile(r"\bon \(([\w, ]*)\)")


class Alert(NamedTuple):
    """One alert rule. `when` is read after the metric's name. `lasts`: how long it holds before it fires.

    `says` is the sentence for the person who is woken. In braces it has labels and the value: `{count}`,
    `{coins}`, `{share}` or `{duration}`. `means` is what it means for merchants. `first` is the first step.
    """

    name: str
    when: str
    expression: str
    severity: Severity
    lasts: str = NOW
    says: str = ""
    means: str = ""
    first: str = ""


class Metric(NamedTuple):
    """One metric. `alerts`: when it is wrong, and what to do then. Without one it is for information."""

    name: str
    labels: tuple[str, ...]
    text: str
    alerts: tuple[Alert, ...] = ()


def divide(expression: str) -> str:
    """The expression for each installation by itself."""

    def list_labels(own: str | None) -> str:
        return ", ".join(dict.fromkeys([*INSTALLATION, *re.findall(r"\w+", own or "")]))

    divided = _AGGREGATION.sub(lambda found: f"{found[1]} by ({list_labels(found[2])}) (", expression)
    return _MATCH.sub(lambda found: f"on ({list_labels(found[1])})", divided)
