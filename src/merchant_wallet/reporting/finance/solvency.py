"""Solvency: what is owed to merchants and sub-users, what is held for it, and what is left.

How it is computed:
- Owed: the balances of merchants and sub-users and their holds, from the books.
- Held: hot wallets, deposit addresses and cold addresses, as the last comparison of each chain read them at
  one final block. It has its own time.
- Surplus: held less owed. Parts of it are the fees that were not taken out, and the desk's USDT, which backs
  KFB that customers hold. The rest was brought in by operators, or is not in a book yet.
- In flight: payouts that are signed and not known to be final. They are still held, and still owed.
- KFB exists in the books alone, so nothing is held for it on a chain. It is valued at the desk's middle rate.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import EXCHANGE, FEES, HOLD, MERCHANT, SUBUSER
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.figures import Held, read_held
from merchant_wallet.reporting.finance.movements import Balances, list_day_ends
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.reports import parse_signed
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("custody.sql"))


class ChainHeld(msgspec.Struct, frozen=True):
    """What one chain held for us, in units of USDT, at one final block that was read at `at_ms`."""

    chain: str
    day: int
    at_ms: int
    hot_units: int
    deposit_units: int
    cold_units: int
    in_flight_units: int
    arriving_units: int
    is_sound: bool

    @property
    def held_units(self) -> int:
        """All of it."""
        return self.hot_units + self.deposit_units + self.cold_units


class Solvency(msgspec.Struct, frozen=True):
    """One currency now. `held` is empty for one that is on no chain, and before the first comparison."""

    currency: str
    owed: Held
    held: tuple[ChainHeld, ...]
    missing: tuple[str, ...]

    @property
    def held_units(self) -> int:
        """What all chains hold."""
        return sum([one.held_units for one in self.held])

    @property
    def surplus_units(self) -> int:
        """Held less owed."""
        return self.held_units - self.owed.owed_units

    @property
    def other_units(self) -> int:
        """The surplus without fees and desk."""
        return self.surplus_units - self.owed.fees_units - self.owed.desk_units

    def sum_units(self, place: str) -> int:
        """What is held at one kind of place: `hot`, `deposit`, `cold`, `in_flight` or `arriving`."""
        return sum([getattr(one, f"{place}_units") for one in self.held])


class SolvencyDay(msgspec.Struct, frozen=True):
    """One day's end in one currency. `held_units` is None if a chain was not compared on that day."""

    day: int
    currency: str
    owed_units: int
    fees_units: int
    desk_units: int
    held_units: int | None

    @property
    def surplus_units(self) -> int | None:
        """Held less owed."""
        return None if self.held_units is None else self.held_units - self.owed_units


def _read(row: Row) -> ChainHeld:
    def units(column: str) -> int:
        return parse_signed(row[column]) if row[column] else 0

    return ChainHeld(
        row["chain"],
        row["day"],
        row["at_ms"],
        units("hot"),
        units("unswept"),
        units("cold"),
        units("under_way"),
        units("seen"),
        row["is_sound"],
    )


async def read_solvency(home: Connection, cells: Reach, chains: Sequence[str]) -> list[Solvency]:
    """What is owed and held now, for each currency. Raises BooksMoving."""
    rows = await fetch(home, QUERIES["list_last"].text, {"chains": list(CODES)})
    held = [one for one in map(_read, rows) if one.chain in chains or one.held_units]
    compared = {one.chain for one in held}
    missing = tuple([chain for chain in chains if chain not in compared])
    return [
        Solvency(one.currency, one, tuple(held) if one.currency == USDT else (), missing)
        for one in await cells.read_still(lambda: read_held(cells))
    ]


async def list_solvency(
    home: Connection, cells: Reach, period: Period, chains: Sequence[str]
) -> list[SolvencyDay]:
    """Each day's end in a period and each currency, oldest first."""
    values = {"since_ms": period.since_ms, "until_ms": period.until_ms}
    held: dict[int, dict[str, int]] = {}
    for one in map(_read, await fetch(home, QUERIES["list_held"].text, values)):
        held.setdefault(one.day, {})[one.chain] = one.held_units
    return [
        _make_day(day, currency, balances, held.get(day, {}), chains)
        for day, balances in await list_day_ends(cells, period)
        for currency in CURRENCIES
    ]


def _make_day(
    day: int, currency: str, balances: Balances, held: Mapping[str, int], chains: Sequence[str]
) -> SolvencyDay:
    owed = sum([balances[kind, currency] for kind in (MERCHANT, SUBUSER, HOLD)])
    is_known = currency == USDT and bool(chains) and all(chain in held for chain in chains)
    return SolvencyDay(
        day,
        currency,
        owed,
        balances[FEES, currency],
        balances[EXCHANGE, currency],
        sum(held.values()) if is_known else None,
    )
