"""Metrics of screening, and how they are read: what it keeps back, and whether its provider answers.

Rules: an order that only waits for its merchant's payout hours is not counted. It goes on by itself.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.observability.cell_figures import MAX_COUNTED, Sample, age
from merchant_wallet.observability.metric_rows import Alert, Metric

QUERIES: Final = Queries(Path(__file__).with_name("screening_metrics.sql"))
SUBJECTS: Final = ("order", "deposit")
STATES: Final = ("held", "unanswered")

SCREENING: Final = (
    Metric(
        "wallet_screenings",
        ("subject", "state"),
        "Orders and deposits (`order`, `deposit`) that screening keeps back: `held` waits for a person, "
        "`unanswered` waits because the list can't be read or the screening URL gives no usable answer",
    ),
    Metric(
        "wallet_screening_oldest_seconds",
        ("subject", "state"),
        "How long the longest has been kept back by screening, by what it is about and its state",
        (
            Alert(
                "WalletScreeningHolds",
                "`held` above 3600",
                'max by (subject) (wallet_screening_oldest_seconds{state="held"}) > 3600',
                "ticket",
                says="Held by screening for {duration}: {subject}",
                means="A merchant's payout or deposit waits for a person.",
                first="`screening list` lists them. Decide with `screening release NUMBER --reason TEXT` or "
                "`screening refuse NUMBER --reason TEXT`, or on the page Screening.",
            ),
            Alert(
                "WalletScreeningAway",
                "`unanswered` above 600",
                'max by (subject) (wallet_screening_oldest_seconds{state="unanswered"}) > 600',
                "page",
                says="Screening has had no answer for {duration}: {subject}",
                means="What is screened is not paid and not credited.",
                first="`doctor` says whether the list can be read and the URL answers. `screening list "
                "--state open` has the numbers, `screening show NUMBER` the error.",
            ),
        ),
    ),
    Metric(
        "wallet_screening_questions",
        ("outcome",),
        "Questions to the screening URL that were first asked within the last hour: `answered`, or "
        "`unanswered` (no answer, or one that can't be used)",
        (
            Alert(
                "WalletScreeningFails",
                "more than 10 % are `unanswered` for 10 minutes",
                'max(wallet_screening_questions{outcome="unanswered"}) / '
                "(sum(max by (outcome) (wallet_screening_questions)) > 0) > 0.1",
                "ticket",
                "10m",
                says="{share} of the questions to the screening URL have no usable answer",
                means="Payouts and deposits are late; with WALLET_SCREENING_FAIL_OPEN they pass without "
                "an answer.",
                first="`screening list --state all` has the numbers, `screening show NUMBER` the error. "
                "`not authentic` is a wrong secret or an attack. For others ask the provider.",
            ),
        ),
    ),
)


async def read_screening(connection: AsyncConnection[Any], now_ms: int, settings: Settings) -> list[Sample]:
    """What screening keeps back, and the questions of the last hour."""
    waiting = await _rows(connection, "count_waiting", most=MAX_COUNTED)
    found = {(subject, state): (count, since_ms) for subject, state, count, since_ms in waiting}
    samples: list[Sample] = []
    for subject in SUBJECTS:
        for state in STATES:
            names = (subject, state)
            aged = ("wallet_screenings", "wallet_screening_oldest_seconds", names)
            samples += age(*aged, *found.get(names, (0, None)), now_ms)
    [(answered, unanswered)] = await _rows(connection, "count_questions", since_ms=now_ms - HOUR_MS)
    samples.append(("wallet_screening_questions", ("answered",), answered))
    samples.append(("wallet_screening_questions", ("unanswered",), unanswered))
    return samples


async def _rows(connection: AsyncConnection[Any], name: str, **values: int) -> list[tuple[Any, ...]]:
    return await (await connection.execute(QUERIES[name].text, values)).fetchall()
