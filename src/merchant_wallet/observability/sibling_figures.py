"""The figures of several web processes behind one port, joined on one page.

Rules:
- Each process writes its figures on the board every `INTERVAL_S`, and before it answers with the page. A page
  shows what the board has, so no counter ever falls: not if processes answer in turn, nor if one is killed.
- Counters and histograms are added up, those of ended processes included. Gauges and `process_*` have the
  label `process` and stand beside each other.
- The database session of one process has the turn to show the platform (`platform_turn`). Then each of its
  siblings may show it, since all answer at the same address.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from prometheus_client.core import Metric
from prometheus_client.samples import Sample as ProcessSample

from merchant_wallet.base.siblings import ENDED, Siblings
from merchant_wallet.observability import metric_table
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.counters import RequestCounters

INTERVAL_S: Final = 1.0
_COUNTED: Final = frozenset(line.name for line in metric_table.COUNTERS)


class Figures(msgspec.Struct):
    """What a process knows of itself. `families` are `process_*`. `has_turn`: see the module."""

    samples: list[Sample] = []
    answers: list[tuple[str, int, int, int]] = []
    seconds: dict[str, float] = {}
    families: list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]] = []
    has_turn: bool = False


def make_figures(
    samples: Iterable[Sample], counters: RequestCounters | None, families: Iterable[Metric], *, has_turn: bool
) -> Figures:
    """The figures of this process."""
    kept = counters or RequestCounters()
    return Figures(
        list(samples),
        [(*key, count) for key, count in list(kept.counts.items())],
        dict(kept.seconds),
        [(each.name, each.documentation, each.type, _list_samples(each)) for each in families],
        has_turn,
    )


def _list_samples(family: Metric) -> list[tuple[str, dict[str, str], float]]:
    return [(sample.name, sample.labels, sample.value) for sample in family.samples]


def add_processes(several: Sequence[Figures]) -> tuple[list[Sample], RequestCounters, list[Metric]]:
    """The figures of several processes on one page: samples, counters of requests, families. Pure."""
    sums: Counter[tuple[str, tuple[str, ...]]] = Counter()
    gauges: list[Sample] = []
    counters = RequestCounters()
    families: dict[str, Metric] = {}
    for figures in several:
        for name, labels, value in figures.samples:
            if name in _COUNTED:
                sums[name, labels] += value  # type: ignore[assignment]  # Counter's values may be floats.
            else:
                gauges.append((name, labels, value))
        for path, code, bucket, count in figures.answers:
            counters.counts[path, code, bucket] += count
        for path, seconds in figures.seconds.items():
            counters.seconds[path] += seconds
        for family in figures.families:
            _add_family(families, *family)
    samples = [*((name, labels, value) for (name, labels), value in sums.items()), *gauges]
    return samples, counters, list(families.values())


def _add_family(
    families: dict[str, Metric],
    name: str,
    text: str,
    kind: str,
    samples: list[tuple[str, dict[str, str], float]],
) -> None:
    family = families.setdefault(name, Metric(name, text, kind))
    family.samples += [ProcessSample(*sample) for sample in samples]


def keep_counters(several: Sequence[Figures]) -> Figures:
    """What must stay of processes that have ended: their counters. Pure."""
    samples, counters, _ = add_processes(several)
    return make_figures((each for each in samples if each[0] in _COUNTED), counters, (), has_turn=False)


def publish(siblings: Siblings, figures: Figures) -> list[Figures]:
    """Write this process's figures on the board. Returns those of all processes."""
    with siblings.metrics.lock():
        siblings.metrics.write(siblings.seat, msgspec.json.encode(figures))
        found = siblings.metrics.read_all()
    return [msgspec.json.decode(document, type=Figures) for document in found.values()]


def is_siblings_turn(siblings: Siblings) -> bool:
    """Whether another process of the group has the turn to show the platform."""
    with siblings.metrics.lock():
        found = siblings.metrics.read_all()
    others = (document for seat, document in found.items() if seat != siblings.seat)
    return any(msgspec.json.decode(document, type=Figures).has_turn for document in others)


def end_seat(siblings: Siblings, seat: int) -> None:
    """Keep the counters of a process that has ended, and clear its place."""
    board = siblings.metrics
    with board.lock():
        documents = [document for document in (board.read(ENDED), board.read(seat)) if document]
        kept = keep_counters([msgspec.json.decode(document, type=Figures) for document in documents])
        board.write(ENDED, msgspec.json.encode(kept))
        board.write(seat, b"")
