"""What each hot wallet holds, with the moment that each figure is of.

Rules:
- Of two readings the newer one is shown: the payer reads the balance when it pays, a worker reads balance and
  gas again and again and reports it, reconciliation reads both at its block.
- A figure is never shown beside the moment of another one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from merchant_wallet.approvals.acts import reports
from merchant_wallet.approvals.acts.reports import Report
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.money import parse_units
from merchant_wallet.console.request import Connection
from merchant_wallet.custody import records as custody
from merchant_wallet.custody.report import read_coin
from merchant_wallet.hot_wallet.store import WalletShown

_DECIMALS: Final = 10_000


class Holding(msgspec.Struct, frozen=True):
    """A hot wallet's USDT and the chain's own coin in its smallest unit, each with its moment."""

    chain: str
    funds_units: int | None = None
    funds_ms: int | None = None
    coin: int | None = None
    gas_ms: int | None = None

    @property
    def gas(self) -> str | None:
        """The coin for people, to four decimals."""
        return None if self.coin is None else format_coin(self.chain, self.coin)


def format_coin(chain: str, smallest: int) -> str:
    """An amount of the chain's own coin, to four decimals."""
    scale = 10 ** CHAINS[chain].coin_decimals
    whole, fraction = divmod(smallest, scale)
    return f"{whole:,}.{fraction * _DECIMALS // scale:04d} {CHAINS[chain].coin}"


async def read_holdings(
    conn: Connection, chains: Sequence[str], wallets: Mapping[str, WalletShown]
) -> dict[str, Holding]:
    """What the hot wallet of each chain holds."""
    reported = {
        report.subject: report
        for report in await reports.list_reports(conn)
        if report.topic == reports.HOT_WALLET
    }
    found = {}
    for chain in {*chains, *wallets}:
        results = await custody.list_results(conn, chain, 1)
        found[chain] = find_holding(
            chain, wallets.get(chain), reported.get(chain), results[0] if results else None
        )
    return found


def find_holding(
    chain: str,
    wallet: WalletShown | None,
    report: Report | None,
    compared: tuple[int, dict[str, Any]] | None,
) -> Holding:
    """The newest reading of each figure. Pure."""
    if wallet is None:
        return Holding(chain)
    address = format_address(chain, wallet.address)
    funds = [(wallet.checked_ms, wallet.funds_units)]
    coins: list[tuple[int | None, int | None]] = []
    if report is not None and report.report.get("address") == address:
        funds.append((report.reported_ms, report.report.get("fundsUnits")))
        coins.append((report.reported_ms, _read_int(report.report.get("coin"))))
    if compared is not None and "coin" in compared[1]:
        at_ms, document = compared
        held = read_coin(document)
        coins.append((at_ms, held.get(address)))
        # The document has the sum of all hot wallets.
        if list(held) == [address] and "hotWallets" in document:
            funds.append((at_ms, parse_units(document["hotWallets"])))
    funds_ms, funds_units = _find_newest(funds)
    gas_ms, coin = _find_newest(coins)
    return Holding(chain, funds_units, funds_ms, coin, gas_ms)


def _read_int(text: object) -> int | None:
    """A coin's amount, which may be too large for a number in JSON."""
    return None if text is None else int(str(text))


def _find_newest(readings: Sequence[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    known = [(at_ms, value) for at_ms, value in readings if at_ms is not None and value is not None]
    return max(known, default=(None, None))
