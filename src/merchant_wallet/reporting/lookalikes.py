"""Which known addresses the recipients of orders and new addresses look like (see `base/lookalikes`).

Rules:
- Known are the recipients that the merchant has paid, its allow-list, and every address of ours.
- A merchant's people are told of their own merchant's addresses only.
- All addresses are looked up together: once in home and once in each cell.
- Of a proposal, the addresses that it adds are looked up: to an allow-list, as a cold wallet, or where a
  rescue goes.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.addresses import format_address, parse_wallet_address
from merchant_wallet.base.chains import ERC20, EVM, TRC20
from merchant_wallet.base.db import Queries
from merchant_wallet.base.lookalikes import ENDS, find_byte_bounds, find_text_bounds, looks_like, show_ends
from merchant_wallet.book.rules.withdrawals import PAID
from merchant_wallet.custody.cold import two_person_changes as cold_changes
from merchant_wallet.custody.rescues import two_person_changes as rescue_changes
from merchant_wallet.merchants import acts as merchant_acts
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.orders import MAX_OF_ADDRESS
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("lookalikes.sql"))
MAX_RECIPIENTS: Final = 200
"""So many recipients that begin alike are compared."""


class Known(StrEnum):
    """What an address is known as."""

    OURS = "ours"
    ALLOWED = "allowed"
    PAID = "paid"


class NewAddress(NamedTuple):
    """An address that somebody must judge, and the merchant that it is for. None: the platform itself."""

    merchant_id: int | None
    address: str


class Lookalike(NamedTuple):
    """A known address that a new one looks like. `paid`: how often the merchant has paid to it."""

    known: Known
    address: str
    paid: int = 0

    @property
    def ends(self) -> str:
        """What both have in common."""
        return show_ends(self.address)


async def find_lookalikes(
    home: Connection, cells: Reach, new: Iterable[NewAddress], viewer_id: int | None
) -> dict[NewAddress, list[Lookalike]]:
    """What each of these addresses looks like; those that look like nothing are missing.

    `viewer_id` is the merchant whose people look, or None for the platform's.
    """
    wanted = [one for one in dict.fromkeys(new) if _is_valid(one.address)]
    if not wanted:
        return {}
    found: dict[NewAddress, dict[str, Lookalike]] = {}
    # What is known in several ways is named once: that it was paid says most.
    for one, alike in [
        *await _find_paid(cells, [one for one in wanted if one.merchant_id is not None], viewer_id),
        *await _find_ours(home, wanted, viewer_id),
        *await _find_allowed(home, wanted),
    ]:
        if looks_like(one.address, alike.address):
            found.setdefault(one, {}).setdefault(alike.address.lower(), alike)
    return {one: list(alike.values()) for one, alike in found.items()}


def list_new_addresses(change: ProposedChange) -> list[NewAddress]:
    """The addresses that a proposal adds to what may be paid. Pure."""
    if change.kind == cold_changes.ADDRESS:
        address = change.after.get("coldWallet")
        return [NewAddress(None, address)] if isinstance(address, str) else []
    if change.kind == rescue_changes.TRANSFER:
        return [NewAddress(None, str(change.after["to"]))]
    if change.kind != merchant_acts.SET:
        return []
    before, after = (_read_list(facts.get("allowed-addresses")) for facts in (change.before, change.after))
    known = set(before)
    return [NewAddress(change.merchant_id, address) for address in after if address not in known]


def _read_list(shown: object) -> list[str]:
    """The addresses of an allow-list as a proposal shows it. "none" is no address."""
    return str(shown or "").replace(",", " ").split()


async def _find_ours(
    home: Connection, wanted: Sequence[NewAddress], viewer_id: int | None
) -> list[tuple[NewAddress, Lookalike]]:
    addresses = sorted({one.address for one in wanted})
    bounds = [find_byte_bounds(address) for address in addresses]
    values = {
        "addresses": addresses,
        "lows": [low for low, _ in bounds],
        "highs": [high for _, high in bounds],
        "tails": [_read_tail(address) for address in addresses],
        "owner_id": viewer_id,
    }
    known: dict[str, list[str]] = {}
    for row in await fetch(home, QUERIES["find_ours"].text, values):
        known.setdefault(row["wanted"], []).append(_format_like(row["wanted"], bytes(row["known"])))
    return [(one, Lookalike(Known.OURS, address)) for one in wanted for address in known.get(one.address, ())]


async def _find_allowed(home: Connection, wanted: Sequence[NewAddress]) -> list[tuple[NewAddress, Lookalike]]:
    merchant_ids = sorted({one.merchant_id for one in wanted if one.merchant_id is not None})
    rows = await fetch(home, QUERIES["list_allowed"].text, {"merchant_ids": merchant_ids})
    # A list has no limit: each of its addresses is looked at once, not once for each wanted one.
    alike: dict[tuple[int | None, str], list[NewAddress]] = {}
    for one in wanted:
        alike.setdefault((one.merchant_id, show_ends(one.address)), []).append(one)
    return [
        (one, Lookalike(Known.ALLOWED, address))
        for row in rows
        for address in row["allowed_addresses"]
        for one in alike.get((row["merchant_id"], show_ends(address)), ())
    ]


async def _find_paid(
    cells: Reach, wanted: Sequence[NewAddress], viewer_id: int | None
) -> list[tuple[NewAddress, Lookalike]]:
    if not wanted:
        return []
    bounds = [find_text_bounds(one.address) for one in wanted]
    values = {
        "merchant_ids": [one.merchant_id for one in wanted],
        "addresses": [one.address for one in wanted],
        "lows": [low for low, _ in bounds],
        "highs": [high for _, high in bounds],
        "tails": [one.address[-ENDS:].lower() for one in wanted],
        "most_recipients": MAX_RECIPIENTS,
        "most": MAX_OF_ADDRESS,
        "paid": PAID,
    }
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["find_paid"].text, values), viewer_id)
    return [
        (NewAddress(row["merchant_id"], row["wanted"]), Lookalike(Known.PAID, row["known"], row["paid"]))
        for rows in found
        for row in rows
    ]


def _is_valid(address: str) -> bool:
    """Whether an address has a form that can be compared. Old orders may have an invalid one."""
    try:
        parse_wallet_address(address)
    except ValueError:
        return False
    return True


def _read_tail(address: str) -> bytes | None:
    """The last bytes of an EVM address. The end of a TRON address is a checksum."""
    family, raw = parse_wallet_address(address)
    return raw[-ENDS // 2 :] if family is EVM else None


def _format_like(address: str, known: bytes) -> str:
    """20 bytes in the form of an address."""
    return format_address(ERC20 if parse_wallet_address(address)[0] is EVM else TRC20, known)
