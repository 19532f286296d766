"""The alert rules of docs/alerts.yml and their runbook, both from the table of metrics. Pure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from merchant_wallet.observability.metric_rows import NOW, Alert, Metric
from merchant_wallet.observability.metric_table import METRICS, SHOWN_ONCE, list_samples

RULES: Final = Path(__file__).parent.parent.parent / "docs" / "alerts.yml"
RUNBOOK: Final = "docs/operating.md"
_HEAD: Final = """\
# Alert rules for Prometheus, made by `make docs` from the table of metrics. Do not edit them: load them as
# they are, and silence or route by `alertname` and `severity`. `page` wakes a person, `ticket` waits for
# working hours. The runbook of each alert is a heading of docs/operating.md.
groups:
"""
_GROUPS: Final = (("merchant-wallet processes", False), ("merchant-wallet platform", True))


def write_rules() -> str:
    """The whole file."""
    return _HEAD + "".join(
        f"  - name: {name}\n    rules:\n" + "".join(_write_rule(*each) for each in _list_alerts(once=once))
        for name, once in _GROUPS
    )


def show_runbook() -> str:
    """What to do, with a heading for each alert."""
    return "\n\n".join(
        f"#### {alert.name}\n\n{_show_metric(metric)}: {_show_condition(alert)}. "
        f"{'It pages' if alert.severity == 'page' else 'A ticket'}.\n\n{metric.remedy}"
        for once in (False, True)
        for metric, alert in _list_alerts(once=once)
    )


def show_metrics() -> list[tuple[str, ...]]:
    """The rows of the operators' table."""
    return [
        (
            _show_metric(metric),
            metric.text,
            "one process" if metric.name in SHOWN_ONCE else "each process",
            ", ".join(f"[{alert.when}](#{alert.name.lower()})" for alert in metric.alerts),
        )
        for metric in METRICS
    ]


def _list_alerts(*, once: bool) -> Iterator[tuple[Metric, Alert]]:
    for metric in METRICS:
        if (metric.name in SHOWN_ONCE) == once:
            yield from ((metric, alert) for alert in metric.alerts)


def _show_metric(metric: Metric) -> str:
    labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
    samples = list_samples(metric)
    return f"`{(samples[0] if len(samples) == 1 else metric.name)}{labels}`"


def _show_condition(alert: Alert) -> str:
    return alert.when if alert.lasts == NOW or "minutes" in alert.when else f"{alert.when}, for {alert.lasts}"


def _quote(text: str) -> str:
    """A text as YAML writes it between single quotes."""
    return f"'{text.replace(chr(39), 2 * chr(39))}'"


def _write_rule(metric: Metric, alert: Alert) -> str:
    summary = f"{metric.name}: {alert.when}".replace("`", "")
    lines = (
        f"      - alert: {alert.name}",
        f"        expr: {_quote(alert.expression)}",
        *([] if alert.lasts == NOW else [f"        for: {alert.lasts}"]),
        "        labels:",
        f"          severity: {alert.severity}",
        "        annotations:",
        f"          summary: {_quote(summary)}",
        f"          description: {_quote(metric.text.replace('`', ''))}",
        f"          runbook_url: {RUNBOOK}#{alert.name.lower()}",
    )
    return "\n".join(lines) + "\n"
