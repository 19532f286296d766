"""All measurements by name, and how a word on the command line selects some. Pure.

Rules: a name is `group/operation/connections`. Withdrawals come last in a group, because the orders that they
leave behind could affect other rows.
"""

from fnmatch import fnmatchcase
from typing import Final

from bench.merchants import HOT, LARGE, THOUSAND
from bench.rows import LIFE_S, Plan
from bench.signed_requests import BALANCE, DEBIT, FIELDS, MIX, WITHDRAW
from merchant_wallet.base.chains import ERC20, TRC20

CONNECTIONS: Final = (1, 16, 64, 256)
OPERATIONS: Final = (*[name for name in FIELDS if name != WITHDRAW], MIX, WITHDRAW)
CEILING: Final = "ceiling"
FLOOD: Final = "flood"
MEMORY: Final = "memory"
CALLBACKS: Final = "callbacks/delivered"
PAYOUTS: Final = "payouts"
DEPOSITS: Final = "deposits"
PAGES: Final = "pages/transfers beside pages"
CHAINS: Final = (ERC20, TRC20)
FLOODED_CONNECTIONS: Final = 64
FLOODING_CONNECTIONS: Final = 256
LARGE_CONNECTIONS: Final = (64, 256)
SMALL_BOOK: Final = 10_000
LARGE_BOOK: Final = 5_000_000

QUICK: Final = (
    (HOT, DEBIT, 256),
    (HOT, DEBIT, 64),
    (HOT, DEBIT, 1),
    (THOUSAND, DEBIT, 256),
    (HOT, BALANCE, 256),
)
"""The rows that have a goal."""


def make_matrix_plans(seconds: int, *, quick: bool) -> list[Plan]:
    """The rows of operations, merchants and connections."""
    picked = (
        QUICK
        if quick
        else tuple(
            (group, operation, connections)
            for group in (HOT, THOUSAND)
            for operation in OPERATIONS
            for connections in CONNECTIONS
        )
    )
    return [_plan(group, group, operation, connections, seconds) for group, operation, connections in picked]


def make_ceiling_plans(seconds: int, *, quick: bool) -> list[Plan]:
    """The rows of the HTTP path without a database."""
    picked = [(DEBIT, connections) for connections in ((64, 256) if quick else CONNECTIONS)]
    if not quick:
        picked += [(operation, 256) for operation in OPERATIONS if operation != DEBIT]
    return [_plan(CEILING, HOT, operation, connections, seconds) for operation, connections in picked]


def make_flood_plans(seconds: int) -> list[tuple[Plan, Plan | None]]:
    """Transfers alone, beside other transfers, and beside a flood of reads: each plan with the one beside
    it.
    """

    def transfers(name: str) -> Plan:
        return Plan(f"{FLOOD}/{name}", HOT, DEBIT, FLOODED_CONNECTIONS, seconds)

    others = Plan(f"{FLOOD}/other transfers", HOT, DEBIT, FLOODING_CONNECTIONS, seconds)
    reads = Plan(f"{FLOOD}/reads", HOT, BALANCE, FLOODING_CONNECTIONS, seconds)
    return [
        (transfers("transfers alone"), None),
        (transfers("transfers beside transfers"), others),
        (transfers("transfers beside reads"), reads),
    ]


def make_memory_plan() -> Plan:
    """Transfers until a million were made."""
    return Plan(f"{MEMORY}/transfers", HOT, DEBIT, 256, LIFE_S)


def make_large_plans(book: str, seconds: int) -> list[Plan]:
    """Transfers in a book of a certain size."""
    return [
        Plan(f"{LARGE}/{book}/{connections}", LARGE, DEBIT, connections, seconds)
        for connections in LARGE_CONNECTIONS
    ]


def is_picked(name: str, only: str | None) -> bool:
    """Whether a row is selected: `only` is a part of its name or a pattern with `*`. None selects all."""
    return only is None or only in name or fnmatchcase(name, only)


def pick(plans: list[Plan], only: str | None) -> list[Plan]:
    """The selected plans."""
    return [plan for plan in plans if is_picked(plan.name, only)]


def _plan(group: str, population: str, operation: str, connections: int, seconds: int) -> Plan:
    return Plan(f"{group}/{operation}/{connections}", population, operation, connections, seconds)


def _pick_chains(group: str, only: str | None, *, quick: bool) -> tuple[str, ...]:
    """The selected chains of a group with one row for each. There is no goal for them."""
    return () if quick else tuple(chain for chain in CHAINS if is_picked(f"{group}/{chain}", only))


class Choice:
    """The selected rows. `seconds` is how long each lasts."""

    def __init__(self, *, quick: bool, large: bool, only: str | None, seconds: int) -> None:
        memory = make_memory_plan()
        self.seconds = seconds
        self.matrix = pick(make_matrix_plans(seconds, quick=quick), only)
        self.ceiling = pick(make_ceiling_plans(seconds, quick=quick), only)
        # The flood's figures are shares of each other, so all its rows are selected or none.
        flood = make_flood_plans(seconds)
        self.flood = flood if any(is_picked(plan.name, only) for plan, _ in flood) else []
        self.memory = memory if not quick and is_picked(memory.name, only) else None
        self.callbacks = is_picked(CALLBACKS, only)
        self.payouts = _pick_chains(PAYOUTS, only, quick=quick)
        self.deposits = _pick_chains(DEPOSITS, only, quick=quick)
        books = make_large_plans("small", seconds) + make_large_plans("full", seconds)
        self.large = large and bool(pick(books, only))
        self.pages = large and is_picked(PAGES, only)

    @property
    def is_empty(self) -> bool:
        """Whether no row is selected."""
        return not (self.populations or self.callbacks or self.payouts or self.deposits)

    @property
    def populations(self) -> list[str]:
        """The merchants that the selected rows need."""
        names = {plan.population for plan in self.matrix}
        if self.ceiling or self.flood or self.memory:
            names.add(HOT)
        if self.large or self.pages:
            names.add(LARGE)
        return [name for name in (HOT, THOUSAND, LARGE) if name in names]
