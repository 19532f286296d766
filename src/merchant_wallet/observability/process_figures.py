"""What the metrics show of the process itself: its version, its settings, its memory, its open files.

Rules: every gauge has the label `process`, so that several processes can stand on one page. `/proc` is read
by `prometheus_client`, as in any other Python program; on other systems than Linux it shows nothing.
"""

import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric

from merchant_wallet.base.settings import Settings
from merchant_wallet.base.version import read_version
from merchant_wallet.observability import metric_table
from merchant_wallet.observability.cell_figures import Sample


def list_settings(settings: Settings, process: str) -> Iterator[Sample]:
    """The build, the mode, the runbook, the disks, and the settings that alerts compare with."""
    build = (process, read_version(), platform.python_version(), settings.mode)
    yield "wallet_build_info", build, 1
    yield "wallet_sandbox", (process,), int(settings.sandbox)
    yield "wallet_runbook_info", (process, settings.runbook_page), 1
    for name, folder in (("data", settings.data), ("checkpoints", settings.checkpoint_folder)):
        # One that is made later is shown then.
        with suppress(FileNotFoundError):
            usage = shutil.disk_usage(folder)
            yield "wallet_disk_free_bytes", (process, name), usage.free
            yield "wallet_disk_size_bytes", (process, name), usage.total
    for name, value in (
        ("WALLET_QUEUE_LIMIT", settings.queue_limit),
        ("WALLET_APPROVAL_DEADLINE_S", settings.approval_deadline_s),
        ("WALLET_RECONCILE_INTERVAL_S", settings.reconcile_interval_s),
    ):
        yield "wallet_setting", (process, name), value


class ProcessFigures:
    """Processor time, memory, files and start of this process."""

    def __init__(self, process: str) -> None:
        self._label = {"process": process}
        # Without a registry of its own: it is asked with the others.
        self._collector = ProcessCollector(registry=None)
        self._texts = {line.name: line.text for line in metric_table.PROCESS}

    def collect(self) -> Iterator[Metric]:
        """The families, with this process's label."""
        for family in self._collector.collect():
            family.documentation = self._texts[family.name]
            family.samples = [sample._replace(labels=self._label) for sample in family.samples]
            yield family
