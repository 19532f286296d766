"""Metrics of what the service stands on: PostgreSQL's archiving, its standbys, and the pages' certificate.

Rules: what the server does not tell this role, or does not have, is not shown. A worker reads the
certificate and reports it.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.approvals.acts import reports
from merchant_wallet.base.db import Queries
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.metric_rows import Alert, Metric

QUERIES: Final = Queries(Path(__file__).with_name("server_metrics.sql"))
_STANDBY: Final = "max by (standby) (wallet_standby_lag_seconds"

SERVER: Final = (
    Metric(
        "wallet_archiver_behind_seconds",
        (),
        "How long ago PostgreSQL's own archiving last succeeded, while its last try has failed; else 0. Only "
        "with an `archive_command` or `archive_library`",
        (
            Alert(
                "WalletArchiverFails",
                "above 300",
                "max(wallet_archiver_behind_seconds) > 300",
                "ticket",
                says="PostgreSQL has not archived WAL for {duration}",
                means="Merchants notice nothing. A lost disk would lose what was not archived, and WAL "
                "fills the disk.",
                first="The log of PostgreSQL has the archive command's error: is its store full or away? "
                "WAL stays on the database's disk until it is archived.",
            ),
        ),
    ),
    Metric(
        "wallet_standby_lag_seconds",
        ("standby",),
        "How far a standby's replay is behind the primary. Only if the role that is asked has `pg_monitor`",
        (
            Alert(
                "WalletStandbyLags",
                "above 60",
                f"{_STANDBY}) > 60",
                "ticket",
                "5m",
                says="Standby {standby} is {duration} behind",
                means="Merchants notice nothing. If the primary fails now, a standby that is not "
                "synchronous loses this much.",
                first="Is the standby's machine busy, or the network between slow? If it was taken away for "
                "good, the alert ends after an hour.",
            ),
            Alert(
                "WalletStandbyGone",
                "of a standby that was connected an hour ago and is not now",
                f"({_STANDBY} offset 1h) unless {_STANDBY})) and on () sum(wallet_platform_shown) > 0",
                "ticket",
                "5m",
                says="Standby {standby} was connected an hour ago and is not now",
                means="If it was the only synchronous one, commits wait and merchants' calls time out. "
                "Otherwise they notice nothing.",
                first="Start that PostgreSQL, and read its log. If it was taken away for good, the alert "
                "ends after an hour.",
            ),
        ),
    ),
    Metric(
        "wallet_certificate_left_seconds",
        (),
        "Time until the certificate of WALLET_PUBLIC_URL ends, as a worker read it; 0 if it is not trusted. "
        "Only for an https:// URL that workers reach",
        (
            Alert(
                "WalletCertificateEnds",
                "below 14 days",
                "max(wallet_certificate_left_seconds) < 14 * 86400",
                "ticket",
                says="The certificate of WALLET_PUBLIC_URL ends in {duration}",
                means="Nothing fails yet. From its end on every call of every merchant fails.",
                first="Renew the certificate at the proxy in front of the web processes, and load it there. "
                "If an authority of your own signs it, WALLET_CA_FILE names that authority.",
            ),
            Alert(
                "WalletCertificateEnded",
                "below one day",
                "max(wallet_certificate_left_seconds) < 86400",
                "page",
                says="The certificate of WALLET_PUBLIC_URL ends in {duration}, or is not trusted",
                means="Every call of every merchant fails from its end on.",
                first="Renew the certificate at the proxy now, and load it there. If an authority of your "
                "own signs it, WALLET_CA_FILE names that authority.",
            ),
        ),
    ),
)


async def read_server(connection: AsyncConnection[Any], now_ms: int, settings: Settings) -> list[Sample]:
    """Archiving, standbys and the certificate."""
    samples: list[Sample] = []
    for (behind_s,) in await _rows(connection, "read_archiver"):
        samples.append(("wallet_archiver_behind_seconds", (), behind_s))
    for standby, lag_s in await _rows(connection, "list_standbys"):
        samples.append(("wallet_standby_lag_seconds", (standby,), lag_s))
    for one in await reports.list_reports(connection):
        if one.topic == reports.CERTIFICATE:
            left_s = max(0, one.report["endsMs"] - now_ms) / 1000
            samples.append(("wallet_certificate_left_seconds", (), left_s))
    return samples


async def _rows(connection: AsyncConnection[Any], name: str) -> list[tuple[Any, ...]]:
    return await (await connection.execute(QUERIES[name].text)).fetchall()
