"""Every metric: its name, its meaning, and what to do when it is wrong. Pure.

Rules:
- `/metrics`, the table and the runbook in docs/operating.md, and the alert rules in docs/alerts.yml are all
  made from this table. So every metric is documented, and every alert has its runbook line.
- A text becomes Prometheus HELP. It is read alone, so it refers to no other metric by position.
"""

from typing import Final

from merchant_wallet.observability import machine_metrics, process_metrics
from merchant_wallet.observability.backup_metrics import BACKUPS
from merchant_wallet.observability.cold_metrics import COLD
from merchant_wallet.observability.metric_rows import Metric
from merchant_wallet.observability.money_metrics import MONEY
from merchant_wallet.observability.platform_metrics import PLATFORM
from merchant_wallet.observability.screening_metrics import SCREENING
from merchant_wallet.observability.server_metrics import SERVER

COUNTERS: Final = process_metrics.COUNTERS
HISTOGRAM: Final = process_metrics.HISTOGRAM
PROCESS: Final = machine_metrics.PROCESS
_OF_PLATFORM: Final = (*MONEY, *COLD, *SCREENING, *PLATFORM, *BACKUPS, *SERVER)
GAUGES: Final = (*process_metrics.GAUGES, *machine_metrics.DISKS, *_OF_PLATFORM)
"""Gauges that this program computes: the value at the time of the request."""

METRICS: Final = (*COUNTERS, HISTOGRAM, *GAUGES, *PROCESS)
SHOWN_ONCE: Final = frozenset(metric.name for metric in _OF_PLATFORM)
"""The metrics of the platform. One process shows them, however many are scraped."""
_COUNTED: Final = frozenset({*(metric.name for metric in COUNTERS), "process_cpu_seconds"})


def list_samples(metric: Metric) -> tuple[str, ...]:
    """The names under which Prometheus stores a metric."""
    if metric == HISTOGRAM:
        return tuple(f"{metric.name}_{part}" for part in ("bucket", "count", "sum"))
    return (f"{metric.name}_total" if metric.name in _COUNTED else metric.name,)
