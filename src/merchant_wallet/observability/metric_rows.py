"""What the table of metrics is made of: a metric, and the alerts that say when it is wrong. Pure.

Rules:
- A metric's "wrong when" is the text of its alerts. So the documents, the alert rules and the runbook can't
  differ.
- `page` wakes a person: money or requests stand still. `ticket` waits for working hours.
- An expression of an alert names only metrics of the table. It adds up or takes the highest over processes,
  so it is the same for any number of them.
"""

from typing import Final, Literal, NamedTuple

Severity = Literal["page", "ticket"]

NOW: Final = "0m"


class Alert(NamedTuple):
    """One alert rule. `when` is read after the metric's name. `lasts`: how long it holds before it fires."""

    name: str
    when: str
    expression: str
    severity: Severity
    lasts: str = NOW


class Metric(NamedTuple):
    """One metric. `alerts`: when it is wrong. `remedy`: what to do then. Both are empty for information."""

    name: str
    labels: tuple[str, ...]
    text: str
    alerts: tuple[Alert, ...] = ()
    remedy: str = ""

    @property
    def wrong(self) -> str:
        """When to worry, in words."""
        return ", ".join(alert.when for alert in self.alerts)
