"""All measurements by name, and how a word on the command line selects some. Pure.

Rules: a name is `group/operation/connections`. Withdrawals come last in a group, because the orders that they
leave behind could affect other rows.
"""

from fnmatch import fnmatchcase
from typing import Final

from bench.merchants import COLD, HOT, LARGE, SINGLE, THOUSAND
from bench.rows import LIFE_S, Plan
from bench.signed_requests import BALANCE, CREDIT, DEBIT, FIELDS, MIX, WITHDRAW
from merchant_wallet.base.chains import ERC20, TRC20

CONNECTIONS: Final = (1, 16, 64, 256)
OPERATIONS: Final = (*[name for name in FIELDS if name != WITHDRAW], MIX, WITHDRAW)
CEILING: Final = "ceiling"
FLOOD: Final = "flood"
FAIRNESS: Final = "fairness"
MEMORY: Final = "memory"
CALLBACKS: Final = "callbacks/delivered"
PAYOUTS: Final = "payouts"
DEPOSITS: Final = "deposits"
PAGES: Final = "pages/transfers beside pages"
CHAINS: Final = (ERC20, TRC20)
FLOODED_CONNECTIONS: Final = 64
FLOODING_CONNECTIONS: Final = 256
CROWD_CONNECTIONS: Final = 4000
FAIRNESS_S: Final = 15
"""The shortest time for rows of fairness: one connection needs it for some hundred answers."""
COLD_CONNECTIONS: Final = 256
LARGE_CONNECTIONS: Final = (64, 256)
SMALL_BOOK: Final = 10_000
LARGE_BOOK: Final = 5_000_000

QUICK: Final = (
    (HOT, DEBIT, 256),
    (HOT, DEBIT, 64),
    (HOT, DEBIT, 16),
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


def make_fairness_plans(seconds: int) -> list[tuple[Plan, Plan | None]]:
    """A merchant that sends one request after the other: alone, and beside 4,000 waiting ones of another
    merchant.
    """

    seconds = max(seconds, FAIRNESS_S)

    def single(name: str) -> Plan:
        return Plan(f"{FAIRNESS}/{name}", SINGLE, DEBIT, 1, seconds)

    crowd = Plan(f"{FAIRNESS}/4,000 connections", HOT, DEBIT, CROWD_CONNECTIONS, seconds)
    return [(single("one connection alone"), None), (single("one beside 4,000"), crowd)]


def make_memory_plan() -> Plan:
    """Transfers until a million were made."""
    return Plan(f"{MEMORY}/transfers", HOT, DEBIT, 256, LIFE_S)


def make_cold_plans(seconds: int) -> tuple[Plan, Plan]:
    """Transfers to a million sub-users, and the same to two thousand, which the web process remembers."""
    row = f"{CREDIT}/{COLD_CONNECTIONS}"
    return (
        Plan(f"{COLD}/{row}", COLD, CREDIT, COLD_CONNECTIONS, seconds),
        Plan(f"{COLD}/warm/{row}", THOUSAND, CREDIT, COLD_CONNECTIONS, seconds),
    )


def make_cold_memory_plan() -> Plan:
    """Transfers to a million sub-users until a million were made."""
    return Plan(f"{COLD}/{MEMORY}", COLD, CREDIT, COLD_CONNECTIONS, LIFE_S)


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


def _pick_together(plans: list[tuple[Plan, Plan | None]], only: str | None) -> list[tuple[Plan, Plan | None]]:
    """All plans or none, because their figures are compared with each other."""
    return plans if any(is_picked(plan.name, only) for plan, _ in plans) else []


def _plan(group: str, population: str, operation: str, connections: int, seconds: int) -> Plan:
    return Plan(f"{group}/{operation}/{connections}", population, operation, connections, seconds)


def _pick_chains(group: str, only: str | None, *, quick: bool) -> tuple[str, ...]:
    """The selected chains of a group with one row for each. There is no goal for them."""
    return () if quick else tuple(chain for chain in CHAINS if is_picked(f"{group}/{chain}", only))


class Choice:
    """The selected rows. `seconds` is how long each lasts."""

    def __init__(
        self, *, quick: bool, large: bool, only: str | None, seconds: int, cold: bool = False
    ) -> None:
        memory = make_memory_plan()
        self.seconds = seconds
        self.matrix = pick(make_matrix_plans(seconds, quick=quick), only)
        self.ceiling = pick(make_ceiling_plans(seconds, quick=quick), only)
        self.flood = _pick_together(make_flood_plans(seconds), only)
        self.fairness = _pick_together(make_fairness_plans(seconds), only)
        self.memory = memory if not quick and is_picked(memory.name, only) else None
        cold_memory = make_cold_memory_plan()
        self.cold = make_cold_plans(seconds) if cold and pick([*make_cold_plans(seconds)], only) else None
        self.cold_memory = cold_memory if cold and is_picked(cold_memory.name, only) else None
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
        if self.ceiling or self.flood or self.fairness or self.memory:
            names.add(HOT)
        if self.fairness:
            names.add(SINGLE)
        if self.cold:
            names.update((COLD, THOUSAND))
        if self.cold_memory:
            names.add(COLD)
        if self.large or self.pages:
            names.add(LARGE)
        return [name for name in (HOT, THOUSAND, SINGLE, COLD, LARGE) if name in names]
