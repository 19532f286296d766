"""The alert rules of docs/alerts.yml and their runbook, both from the table of metrics. Pure."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scripts.documents.runbook import Steps, read_steps

from merchant_wallet.observability.metric_rows import INSTALLATION, NOW, Alert, Metric, divide
from merchant_wallet.observability.metric_table import METRICS, SHOWN_ONCE, list_samples

RULES: Final = Path(__file__).parent.parent.parent / "docs" / "alerts.yml"
_VALUES: Final = {
    "count": '{{ printf "%.0f" $value }}',
    "coins": '{{ printf "%.2f" $value }}',
    "share": "{{ $value | humanizePercentage }}",
    "duration": "{{ $value | humanizeDuration }}",
}
"""How the value of an expression is written, by the word in braces. Any other word is a label."""
_WHERE: Final = "".join(
    f"{{{{ with $labels.{label} }}}} · {{{{ . }}}}{{{{ end }}}}"
    for label in (*INSTALLATION, "instance", "process")
)
_RUNBOOK: Final = (
    '{{ with printf "last_over_time(wallet_runbook_info{job=%q,installation=%q}[1d])"'
    ' $labels.job $labels.installation | query }}{{ . | first | label "url" }}'
    "{{ else }}docs/operating.md{{ end }}"
)
"""The page of the runbook is a setting of the service. Prometheus knows it for as long as this range."""
_HEAD: Final = """\
# Alert rules for Prometheus, made by `make docs` from the table of metrics. Do not edit them: load them as
# they are, and silence or route by `alertname` and `severity`. `page` wakes a person, `ticket` waits for
# working hours. The runbook of each alert is a heading of docs/operating.md; WALLET_RUNBOOK_URL says where
# people find it. Installations are told apart by `job`, and by the label `installation` if targets have it.
groups:
"""
_GROUPS: Final = (("merchant-wallet processes", False), ("merchant-wallet platform", True))


def write_rules() -> str:
    """The whole file."""
    return _HEAD + "".join(
        f"  - name: {name}\n    rules:\n"
        + "".join(_write_rule(alert) for _, alert in _list_alerts(once=once))
        for name, once in _GROUPS
    )


def show_runbook() -> str:
    """The steps of each alert under its own heading. Raises KeyError for an alert without steps."""
    steps = read_steps()
    return "\n\n".join(
        _show_alert(metric, alert, steps[alert.name])
        for once in (False, True)
        for metric, alert in _list_alerts(once=once)
    )


def _show_alert(metric: Metric, alert: Alert, steps: Steps) -> str:
    kind = "It pages" if alert.severity == "page" else "A ticket"
    return "\n".join(
        (
            f"#### {alert.name}\n",
            f"{_show_metric(metric)}: {_show_condition(alert)}. {kind}.\n",
            f"- **For merchants:** {alert.means}",
            f"- **Look:** `{steps.look}`",
            f"- **Do:** {steps.act}",
            f"- **Wake:** {steps.wake or 'Nobody.'}",
            f"- **Over:** {steps.over}",
        )
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


def fill(says: str) -> str:
    """A sentence with what Prometheus writes in place of the words in braces."""
    return re.sub(r"\{(\w+)\}", lambda found: _VALUES.get(found[1], f"{{{{ $labels.{found[1]} }}}}"), says)


def describe(alert: Alert) -> str:
    """What an alert means for merchants, and the first step."""
    return f"{alert.means} First step: {alert.first}".replace("`", "")


def _quote(text: str) -> str:
    """A text as YAML writes it between single quotes."""
    return f"'{text.replace(chr(39), 2 * chr(39))}'"


def _write_rule(alert: Alert) -> str:
    lines = (
        f"      - alert: {alert.name}",
        f"        expr: {_quote(divide(alert.expression))}",
        *([] if alert.lasts == NOW else [f"        for: {alert.lasts}"]),
        "        labels:",
        f"          severity: {alert.severity}",
        "        annotations:",
        f"          summary: {_quote(fill(alert.says) + _WHERE)}",
        f"          description: {_quote(describe(alert))}",
        f"          runbook_url: {_quote(f'{_RUNBOOK}#{alert.name.lower()}')}",
    )
    return "\n".join(lines) + "\n"
