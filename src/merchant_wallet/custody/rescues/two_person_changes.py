"""What two people decide about a rescue: what is moved from which deposit address, and where to.

Rules:
- Only from a deposit address of ours, with the key that it was issued with. Never the token of the settings:
  sweeps move that, and credits belong to it.
- Never to an address of ours, apart from a cold wallet, nor to a contract that is moved. The signer knows the
  addresses that rescues may go to, and refuses all others.
- Nothing is decided while something else is being moved from the address: the coin there may be its fee.
- A rescue and its entry in the audit log are one transaction, whichever door it comes from.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final

import msgspec

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import ZERO, format_address, parse_address
from merchant_wallet.base.chains import CHAINS, COINS, EVM
from merchant_wallet.base.invisible_text import drop_invisible
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.chains.signer import Source
from merchant_wallet.custody.rescues import store
from merchant_wallet.custody.rescues.store import KeyOwner, NewRescue
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.own_addresses import Own

TRANSFER: Final = "rescue.transfer"
ALL: Final = "all"
"""Said in place of an amount: everything that is there."""
_SUBJECT: Final = "rescue "
_MAX_DIGITS: Final = 78
_BITS: Final = 256

FindOwner = Callable[[int, bytes], Awaitable[KeyOwner | None]]
"""What an address of a merchant was issued for, from the merchant's cell."""


class RescueRefusal(Enum):
    """Why a rescue is refused. The value is the sentence."""

    SANDBOX = "There is nothing to rescue: the sandbox's chains hold no real money."
    CHAIN_OFF = "The settings have no nodes for that chain, so no worker would move anything there."
    NOT_AN_ADDRESS = "That is no address of this chain."
    NOT_DEPOSIT = "That is no deposit address of ours on this chain."
    OTHER_FAMILY = (
        "That address was issued for another chain, and its key here is another one."
        " Its key must be taken from the seed by hand."
    )
    OWN_TOKEN = "That is the token of the settings: sweeps and credits are for it, and no rescue."
    NOT_A_TOKEN = "A token is named by its contract's address, and the chain's coin by its name."
    OWN_ADDRESS = "That address is ours. A rescue goes to an address of the owner's, or to a cold wallet."
    NO_RECIPIENT = "Nothing can be sent there: it is the zero address, a token's contract, or where it lies."
    AMOUNT = "The amount is `all`, or a whole number of smallest units above 0."
    UNDER_WAY = "Something is being moved from this address. Wait until that has ended."


class RescueRefused(ValueError):
    """A rescue can't be proposed like this. `refusal` is the rule, the text its sentence."""

    def __init__(self, refusal: RescueRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class WantedRescue(msgspec.Struct, frozen=True):
    """A rescue as somebody typed it. `token` is a contract or the coin's name."""

    chain: str
    address: str
    token: str
    amount: str
    recipient: str


def format_subject(chain: str, address: bytes) -> str:
    """The name of an address's rescues in proposals and in the audit log."""
    return f"{_SUBJECT}{chain} {format_address(chain, address)}"


def make_kinds(tokens: Mapping[str, bytes], *, sandbox: bool) -> dict[str, Kind]:
    """The kind of proposals. `tokens` has each chain's token contract."""

    async def apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
        try:
            facts = change.before, change.after
            await begin(conn, author, facts, tokens, change.proposal_no, sandbox=sandbox)
        except RescueRefused as refused:
            raise ChangeRefused(str(refused)) from refused
        return Applied()

    return {TRANSFER: Kind(TRANSFER, _read, apply)}


async def read_before(conn: Connection, chain: str, address: bytes) -> Facts:
    """How many rescues an address had, as a proposal's `before`. Locks them. Raises RescueRefused."""
    await store.lock_address(conn, chain, address)
    count, is_busy = await store.count_rescues(conn, chain, address)
    if is_busy:
        raise RescueRefused(RescueRefusal.UNDER_WAY)
    return {"rescues": count}


async def describe(
    home: Connection,
    wanted: WantedRescue,
    tokens: Mapping[str, bytes],
    find_owner: FindOwner,
    *,
    sandbox: bool,
) -> tuple[bytes, Facts]:
    """The deposit address, and the rescue as a proposal's `after`. Raises RescueRefused.

    `tokens` has the token's contract of each chain that is in use.
    """
    if sandbox:
        raise RescueRefused(RescueRefusal.SANDBOX)
    if wanted.chain not in tokens:
        raise RescueRefused(RescueRefusal.CHAIN_OFF)
    chain, address = wanted.chain, _parse(wanted.chain, wanted.address)
    account = await store.find_account(home, address)
    if account is None or account.account_no is None:
        raise RescueRefused(RescueRefusal.NOT_DEPOSIT)
    owner = await find_owner(account.merchant_id, address)
    if owner is None:
        raise RescueRefused(RescueRefusal.NOT_DEPOSIT)
    if owner.is_evm != (CHAINS[chain].family is EVM):
        raise RescueRefused(RescueRefusal.OTHER_FAMILY)
    source = Source(account.account_no, owner.branch, owner.address_index)
    contract, recipient = _parse_token(wanted), _parse(chain, wanted.recipient)
    await _check(home, chain, address, contract, recipient, tokens[chain])
    return address, {
        "chain": chain,
        "address": format_address(chain, address),
        "merchantId": account.merchant_id,
        **({} if owner.ext_user_id is None else {"extUserId": owner.ext_user_id}),
        "keyPath": "/".join(map(str, (source.account, source.branch, source.index))),
        "asset": COINS[chain] if contract is None else format_address(chain, contract),
        "amount": _parse_amount(wanted.amount),
        "to": format_address(chain, recipient),
    }


async def begin(
    conn: Connection,
    author: Author,
    facts: tuple[Facts, Facts],
    tokens: Mapping[str, bytes],
    proposal_no: int | None = None,
    *,
    sandbox: bool,
) -> int:
    """Store a rescue from a proposal's `before` and `after`, for the workers. Raises RescueRefused."""
    if sandbox:
        raise RescueRefused(RescueRefusal.SANDBOX)
    before, after = facts
    chain = str(after["chain"])
    address, recipient = (parse_address(chain, str(after[name])) for name in ("address", "to"))
    contract = None if after["asset"] == COINS[chain] else parse_address(chain, str(after["asset"]))
    account, branch, index = map(int, str(after["keyPath"]).split("/"))
    async with conn.transaction():
        await read_before(conn, chain, address)
        await _check(conn, chain, address, contract, recipient, tokens[chain])
        new = NewRescue(
            chain,
            address,
            int(after["merchantId"]),
            Source(account, branch, index),
            contract,
            None if after["amount"] == ALL else int(after["amount"]),
            recipient,
            proposal_no,
            author.actor,
        )
        number = await store.add_rescue(conn, new, author.at_ms)
        told = {**after, "rescueNo": number}
        await author.record(conn, TRANSFER, format_subject(chain, address), before=before, after=told)
    return number


async def _check(
    home: Connection, chain: str, address: bytes, contract: bytes | None, recipient: bytes, token: bytes
) -> None:
    if contract == token:
        raise RescueRefused(RescueRefusal.OWN_TOKEN)
    if recipient in (ZERO, token, contract, address):
        raise RescueRefused(RescueRefusal.NO_RECIPIENT)
    if await own_addresses.find(home, recipient) not in (None, Own.COLD):
        raise RescueRefused(RescueRefusal.OWN_ADDRESS)


def _parse(chain: str, text: str) -> bytes:
    try:
        return parse_address(chain, drop_invisible(text))
    except ValueError:
        raise RescueRefused(RescueRefusal.NOT_AN_ADDRESS) from None


def _parse_token(wanted: WantedRescue) -> bytes | None:
    """The contract. None for the chain's coin."""
    text = drop_invisible(wanted.token)
    if text.upper() == COINS[wanted.chain]:
        return None
    try:
        contract = parse_address(wanted.chain, text)
    except ValueError:
        raise RescueRefused(RescueRefusal.NOT_A_TOKEN) from None
    if contract == ZERO:
        raise RescueRefused(RescueRefusal.NOT_A_TOKEN)
    return contract


def _parse_amount(text: str) -> str:
    text = text.strip().lower()
    number = parse_digits(text, _MAX_DIGITS)
    if text != ALL and (not number or number.bit_length() > _BITS):
        raise RescueRefused(RescueRefusal.AMOUNT)
    return text if text == ALL else str(number)


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    chain = str(change.after["chain"])
    try:
        return await read_before(conn, chain, parse_address(chain, str(change.after["address"])))
    except RescueRefused as refused:
        raise ChangeRefused(str(refused)) from refused
