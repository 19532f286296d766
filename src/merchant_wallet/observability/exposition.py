"""Writes samples in the text format of Prometheus, each in its family with HELP and TYPE."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from merchant_wallet.observability import metric_table
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.counters import LAST_BUCKET, RequestCounters


class _Collected(Collector):
    """Metric families that are complete already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def write_page(
    samples: list[Sample], request_counters: RequestCounters | None, further: Iterable[Metric] = ()
) -> bytes:
    """All samples as a page. Raises KeyError for a metric that is not in the table."""
    counters = {
        line.name: CounterMetricFamily(line.name, line.text, labels=line.labels)
        for line in metric_table.COUNTERS
    }
    gauges = {
        line.name: GaugeMetricFamily(line.name, line.text, labels=line.labels) for line in metric_table.GAUGES
    }
    for name, values, number in samples:
        (counters.get(name) or gauges[name]).add_metric(values, number)
    families: list[Metric] = [family for family in (*counters.values(), *gauges.values()) if family.samples]
    if request_counters is not None:
        families.append(_make_histogram(request_counters))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*families, *further]))
    return generate_latest(registry)


def name_operation(path: str) -> str:
    """The operation of a path."""
    return path.rsplit("/", 1)[1]


def _make_histogram(request_counters: RequestCounters) -> HistogramMetricFamily:
    line = metric_table.HISTOGRAM
    family = HistogramMetricFamily(line.name, line.text, labels=line.labels)
    sums = request_counters.sums_s()
    for path, counts in sorted(request_counters.by_time().items()):
        total, buckets = 0, []
        for bucket, count in enumerate(counts):
            total += count
            edge = "+Inf" if bucket == LAST_BUCKET else str((1 << bucket) / 1000)
            buckets.append((edge, float(total)))
        family.add_metric((name_operation(path),), buckets, sums[path])
    return family
