"""What two people decide about cold money: a chain's cold wallet, its limits, and each transfer.

Rules:
- A cold wallet is an address of its chain that is nothing else of ours: no hot wallet, no deposit address,
  not the token's contract. No order to it is open: such an order would be paid into our own wallet. Who
  proposes it asks all cells. Who accepts it looks for payouts under way, under the lock of the hot wallets.
- A chain has one transfer at a time. A proposal names both wallets, so it fails if one was changed since.
- One person who proposes and accepts a transfer alone exists only in the sandbox.
- A change and its entry in the audit log are one transaction, whichever door it comes from.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import ZERO, format_address, parse_address
from merchant_wallet.base.chains import is_evm
from merchant_wallet.base.invisible_text import drop_invisible
from merchant_wallet.base.money import MAX_BALANCE_UNITS, format_units, parse_units
from merchant_wallet.custody.cold import store, wallets
from merchant_wallet.custody.cold.limits import (
    RECORDED,
    SIGNER,
    TO_COLD,
    Direction,
    Limits,
    Way,
    is_in_order,
)
from merchant_wallet.custody.cold.store import NewTransfer
from merchant_wallet.hot_wallet.store import find_address
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.own_addresses import Own

ADDRESS: Final = "cold.address"
LIMITS: Final = "cold.limits"
TRANSFER: Final = "cold.transfer"
_SUBJECT: Final = "cold "
_HASH_DIGITS: Final = 64

CountOrders = Callable[[bytes], Awaitable[tuple[int, int]]]
"""How many orders to an address are open, and how many were paid."""


class ColdRefusal(Enum):
    """Why a change of cold money is refused. The value is the sentence."""

    NOT_AN_ADDRESS = "That is no address of this chain."
    OWN_HOT = "That address is a hot wallet of ours."
    OWN_DEPOSIT = "That address is a deposit address of ours."
    OPEN_ORDER = (
        "An order to that address is open, and would be paid into our own wallet."
        " Wait until it has ended, or cancel it."
    )
    NO_WALLET = "That address is no wallet: it is the token's contract or the zero address."
    LIMITS_ORDER = "The limits must be in this order: refill below, target, at most hot."
    NO_COLD_WALLET = "This chain has no cold wallet yet: two people register one first."
    NO_HOT_WALLET = "No hot wallet of this chain is known yet: it is known once the workers have started."
    UNDER_WAY = "A transfer of this chain is under way. Wait for its end, or give it up."
    AMOUNT = "The amount must be above 0, with at most 6 decimals."
    WAY = "A transfer from the cold wallet is signed elsewhere or recorded: no key of it is here."
    SANDBOX_WAY = "In the sandbox only the worker's signer moves cold money: its chains are simulated."
    HASH = "A recorded transfer needs its transaction's hash, 64 hexadecimal digits."
    NOT_OPENED = "It could not begin: a transfer is under way, or its transaction is recorded already."


class ColdRefused(ValueError):
    """A change can't be proposed like this. `refusal` is the rule, the text its sentence."""

    def __init__(self, refusal: ColdRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class WantedTransfer(msgspec.Struct, frozen=True):
    """A transfer as somebody asks for it. `tx_hash` only if it was made elsewhere."""

    direction: Direction
    way: Way
    amount_units: int
    tx_hash: str | None = None


def format_subject(chain: str) -> str:
    """The name of a chain's cold money in proposals and in the audit log."""
    return f"{_SUBJECT}{chain}"


def read_chain(change: ProposedChange) -> str:
    """The chain of a proposal."""
    return change.subject.removeprefix(_SUBJECT)


def make_kinds(tokens: Mapping[str, bytes]) -> dict[str, Kind]:
    """The kinds of proposals. `tokens` has each chain's token contract."""

    async def apply_address(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        return await _apply(set_address(conn, author, read_chain(change), _facts_of(change), tokens))

    return {
        ADDRESS: Kind(ADDRESS, _read_address, apply_address),
        LIMITS: Kind(LIMITS, _read_limits, _apply_limits),
        TRANSFER: Kind(TRANSFER, _read_wallets, _apply_transfer),
    }


# The cold wallet.


async def read_address(conn: Connection, chain: str) -> Facts:
    """A chain's cold wallet as a proposal's `before`. Locks it."""
    await wallets.lock_chain(conn, chain)
    current = await wallets.read_current(conn, chain)
    return {"coldWallet": None if current is None else format_address(chain, current)}


async def describe_address(
    conn: Connection, chain: str, text: str | None, token: bytes, count_orders: CountOrders | None = None
) -> Facts:
    """A new cold wallet as a proposal's `after`. None retires the present one. Raises ColdRefused.

    The orders that were paid to it before are counted for who decides.
    """
    if text is None:
        return {"coldWallet": None}
    try:
        address = parse_address(chain, drop_invisible(text))
    except ValueError:
        raise ColdRefused(ColdRefusal.NOT_AN_ADDRESS) from None
    if address in (ZERO, token):
        raise ColdRefused(ColdRefusal.NO_WALLET)
    own = await own_addresses.find(conn, address)
    if own is Own.HOT:
        raise ColdRefused(ColdRefusal.OWN_HOT)
    if own is Own.DEPOSIT:
        raise ColdRefused(ColdRefusal.OWN_DEPOSIT)
    opened, paid = (0, 0) if count_orders is None else await count_orders(address)
    if opened or await wallets.has_open_payout(conn, address):
        raise ColdRefused(ColdRefusal.OPEN_ORDER)
    return {"coldWallet": format_address(chain, address), **({"paidOrders": paid} if paid else {})}


async def set_address(
    conn: Connection, author: Author, chain: str, facts: tuple[Facts, Facts], tokens: Mapping[str, bytes]
) -> None:
    """Register or retire a cold wallet, from a proposal's `before` and `after`. Raises ColdRefused."""
    text = facts[1]["coldWallet"]
    async with conn.transaction():
        # No payout is reserved between the look and the commit.
        await wallets.lock_hot(conn)
        await describe_address(conn, chain, text, tokens[chain])
        if await store.find_open(conn, chain) is not None:
            raise ColdRefused(ColdRefusal.UNDER_WAY)
        address = None if text is None else parse_address(chain, text)
        await wallets.set_current(conn, chain, address, author.at_ms)
        await _record(conn, author, ADDRESS, chain, facts)


async def _read_address(conn: Connection, change: ProposedChange) -> Facts:
    return await read_address(conn, read_chain(change))


# The limits.


async def read_limits(conn: Connection, chain: str) -> Facts:
    """A chain's limits as a proposal's `before`."""
    await wallets.lock_chain(conn, chain)
    found = await wallets.read_limits(conn, chain)
    return _format_limits(found)


def describe_limits(limits: Limits) -> Facts:
    """New limits as a proposal's `after`. Raises ColdRefused."""
    if not is_in_order(limits) or limits.most_units > MAX_BALANCE_UNITS:
        raise ColdRefused(ColdRefusal.LIMITS_ORDER)
    return _format_limits(limits)


async def set_limits(conn: Connection, author: Author, chain: str, facts: tuple[Facts, Facts]) -> None:
    """Set limits from a proposal's `before` and `after`."""
    limits = Limits(*(parse_units(facts[1][name]) for name in ("refillBelow", "target", "mostHot")))
    async with conn.transaction():
        await wallets.set_limits(conn, chain, limits, author.at_ms)
        await _record(conn, author, LIMITS, chain, facts)


def _format_limits(limits: Limits | None) -> Facts:
    values = (None,) * 3 if limits is None else msgspec.structs.astuple(limits)
    texts = [None if units is None else format_units(units) for units in values]
    return dict(zip(("refillBelow", "target", "mostHot"), texts, strict=True))


async def _read_limits(conn: Connection, change: ProposedChange) -> Facts:
    return await read_limits(conn, read_chain(change))


async def _apply_limits(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    return await _apply(set_limits(conn, author, read_chain(change), _facts_of(change)))


# A transfer.


async def read_wallets(conn: Connection, chain: str) -> Facts:
    """Both wallets of a chain and its open transfer, as a proposal's `before`."""
    await wallets.lock_chain(conn, chain)
    cold, hot = await wallets.read_current(conn, chain), await find_address(conn, chain)
    return {
        "coldWallet": None if cold is None else format_address(chain, cold),
        "hotWallet": None if hot is None else format_address(chain, hot),
        "underWay": await store.find_open(conn, chain),
    }


def describe_transfer(chain: str, wanted: WantedTransfer, before: Facts, *, is_sandbox: bool) -> Facts:
    """A transfer as a proposal's `after`. Raises ColdRefused. Pure."""
    if before["coldWallet"] is None:
        raise ColdRefused(ColdRefusal.NO_COLD_WALLET)
    if before["hotWallet"] is None:
        raise ColdRefused(ColdRefusal.NO_HOT_WALLET)
    if before["underWay"] is not None:
        raise ColdRefused(ColdRefusal.UNDER_WAY)
    if not 0 < wanted.amount_units <= MAX_BALANCE_UNITS:
        raise ColdRefused(ColdRefusal.AMOUNT)
    if is_sandbox and (wanted.way != SIGNER or wanted.direction != TO_COLD):
        raise ColdRefused(ColdRefusal.SANDBOX_WAY)
    if wanted.way == SIGNER and wanted.direction != TO_COLD:
        raise ColdRefused(ColdRefusal.WAY)
    ends = (before["hotWallet"], before["coldWallet"])
    sender, recipient = ends if wanted.direction == TO_COLD else reversed(ends)
    return {
        "direction": wanted.direction,
        "amount": format_units(wanted.amount_units),
        "from": sender,
        "to": recipient,
        "way": wanted.way,
        **({"txHash": read_hash(chain, wanted.tx_hash)} if wanted.way == RECORDED else {}),
    }


async def begin_transfer(
    conn: Connection,
    author: Author,
    chain: str,
    facts: tuple[Facts, Facts],
    proposal_no: int | None = None,
) -> int:
    """Store a transfer from a proposal's `before` and `after`. Returns its id. Raises ColdRefused."""
    before, after = facts
    new = NewTransfer(
        chain,
        after["direction"],
        after["way"],
        parse_address(chain, before["hotWallet"]),
        parse_address(chain, before["coldWallet"]),
        parse_units(after["amount"]),
        after.get("txHash"),
        proposal_no,
        author.actor,
    )
    async with conn.transaction():
        transfer_id = await store.open_transfer(conn, new, author.at_ms)
        if transfer_id is None:
            raise ColdRefused(ColdRefusal.NOT_OPENED)
        await _record(conn, author, TRANSFER, chain, (before, {**after, "transferId": transfer_id}))
    return transfer_id


def read_hash(chain: str, text: str | None) -> str:
    """A transaction's hash in the form of its chain. Raises ColdRefused."""
    digits = (text or "").strip().lower().removeprefix("0x")
    if len(digits) != _HASH_DIGITS or not all(digit in "0123456789abcdef" for digit in digits):
        raise ColdRefused(ColdRefusal.HASH)
    return f"0x{digits}" if is_evm(chain) else digits


async def _read_wallets(conn: Connection, change: ProposedChange) -> Facts:
    return await read_wallets(conn, read_chain(change))


async def _apply_transfer(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    return await _apply(
        begin_transfer(conn, author, read_chain(change), _facts_of(change), change.proposal_no)
    )


async def _apply(changing: Awaitable[object]) -> Applied:
    try:
        await changing
    except ColdRefused as refused:
        raise ChangeRefused(str(refused)) from refused
    return Applied()


def _facts_of(change: ProposedChange) -> tuple[Facts, Facts]:
    return change.before, change.after


async def _record(
    conn: Connection, author: Author, action: str, chain: str, facts: tuple[Facts, Facts]
) -> None:
    before, after = facts
    await author.record(conn, action, format_subject(chain), before=before, after=after)
