"""`deposit`, `confirm` and `reorganise`: transfers to a merchant's addresses on the sandbox's chains.

Rules:
- Everything after the chain is the service's own way: watcher, dust, crediting, callback.
- An automatic deposit is final after the sandbox's confirmation time. A manual one waits in an unconfirmed
  block until a test confirms it. Only such a block can leave the chain.
- Few manual deposits wait at a time, because the watchers read their blocks at each change.
- What screening says of a deposit follows from its sender, as it does of an order from its recipient.
"""

import secrets
from typing import Final, NamedTuple, NoReturn

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, optional, require
from merchant_wallet.base.addresses import format_address, parse_address
from merchant_wallet.base.chains import is_evm
from merchant_wallet.base.codes import (
    ADDRESS_UNUSABLE,
    CHAIN_UNSUPPORTED,
    FIELD_INVALID,
    LIMIT_EXCEEDED,
    ORDER_NOT_FOUND,
    WALLET_NOT_FOUND,
    refuse,
)
from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import ReadSubUser
from merchant_wallet.book.outcomes import SubUserFound
from merchant_wallet.chains.sandbox.reader import compute_tx_hash, compute_unconfirmed_hash
from merchant_wallet.chains.sandbox.recipients import SCREENED_HOLD, SCREENED_REFUSE
from merchant_wallet.deposits.sandbox_deposits import add_deposit
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.actions.funds import require_test_amount
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action

SENDER: Final = bytes.fromhex("00000000000000000000000000000000005a4d0e")
SENDERS: Final = {"pass": SENDER, "hold": SCREENED_HOLD, "refuse": SCREENED_REFUSE}
"""By what screening says of a deposit from it."""
AUTO: Final = "auto"
MANUAL: Final = "manual"
MAX_OF_MERCHANT: Final = 10
MAX_OF_CHAIN: Final = 60
"""Deposits that wait for a test. A watcher reads 128 unconfirmed blocks in one turn."""
TX_HASH_LENGTH: Final = 66


class Deposit(NamedTuple):
    """What is asked for. Without an address and a sub-user it goes to the merchant's own address."""

    chain: str
    address: bytes | None
    ext_user_id: str | None
    amount_units: int
    is_manual: bool
    sender: bytes


def _read(fields: Fields, context: OperationContext) -> Deposit:
    chain = require_chain(fields, context)
    text, ext_user_id = optional(fields, "address", 64), optional(fields, "extUserId", 20)
    if text is not None and ext_user_id is not None:
        refuse(FIELD_INVALID, "address, extUserId: send one of them")
    address = None if text is None else _parse_address(chain, text)
    amount_units = require_test_amount(fields)
    finality = optional(fields, "finality", 20) or AUTO
    if finality not in (AUTO, MANUAL):
        refuse(FIELD_INVALID, f"finality must be {AUTO} or {MANUAL}")
    screening = optional(fields, "screening", 20) or "pass"
    if screening not in SENDERS:
        refuse(FIELD_INVALID, f"screening must be {', '.join(SENDERS)}")
    return Deposit(chain, address, ext_user_id, amount_units, finality == MANUAL, SENDERS[screening])


def require_chain(fields: Fields, context: OperationContext) -> str:
    """The `chainType` of a request. Refused 40004."""
    chain = require(fields, "chainType", 20)
    if chain not in context.chains:
        refuse(CHAIN_UNSUPPORTED, f"chainType must be {' or '.join(context.chains)}")
    return chain


def _parse_address(chain: str, text: str) -> bytes:
    try:
        return parse_address(chain, text)
    except ValueError as error:
        refuse(ADDRESS_UNUSABLE, f"address is not valid on {chain}: {error}")


async def _find_recipient(call: Call, asked: Deposit) -> bytes:
    """The address of the deposit. Refused 40400, 40402 if it is not this merchant's."""
    if asked.ext_user_id is not None:
        found = await call.ask(ReadSubUser(asked.ext_user_id))
        assert isinstance(found, SubUserFound)
        return found.evm_address if is_evm(asked.chain) else found.tron_address
    if asked.address is None:
        values = {"merchant_id": call.merchant_id, "chain": asked.chain}
        if own := await store.run(call.cell, "read_own_address", **values):
            return bytes(own[0][0])
        refuse(WALLET_NOT_FOUND, f"you have no own deposit address on {asked.chain} yet: try again soon")
    owner = await store.run(call.home, "find_owner", address=asked.address)
    if owner != [(call.merchant_id,)]:
        refuse(WALLET_NOT_FOUND, "address: neither yours nor of one of your sub-users")
    return asked.address


async def _deposit(call: Call, asked: Deposit) -> list[DataItem]:
    recipient = await _find_recipient(call, asked)
    address, at_ms = format_address(asked.chain, recipient), call.context.clock()
    async with call.home.transaction():
        final_ms: int | None = None
        if asked.is_manual:
            tx_hash = await _add_unconfirmed(call, asked, recipient, at_ms)
        else:
            added = await add_deposit(
                call.home, asked.chain, asked.sender, recipient, asked.amount_units, at_ms
            )
            tx_hash = compute_tx_hash(asked.chain, added.block_number)
            final_ms = added.at_ms + call.context.confirm_ms
        told = {"txHash": tx_hash, "amount": format_units(asked.amount_units)}
        await call.record("sandbox.deposit", f"address {address}", after=told)
    return _answer(asked.chain, tx_hash, address, asked.amount_units, final_ms)


async def _add_unconfirmed(call: Call, asked: Deposit, recipient: bytes, at_ms: int) -> str:
    home, merchant_id = call.home, call.merchant_id
    await store.run(home, "lock_deposits")
    await store.run(home, "drop_old_unconfirmed", before_ms=at_ms - DAY_MS)
    [(mine, everyone, last_no)] = await store.run(
        home, "count_unconfirmed", merchant_id=merchant_id, chain=asked.chain
    )
    if mine >= MAX_OF_MERCHANT or everyone >= MAX_OF_CHAIN:
        refuse(
            LIMIT_EXCEEDED, f"{mine} of your deposits wait on {asked.chain}, {everyone} in all: confirm some"
        )
    tx_hash = compute_unconfirmed_hash(asked.chain, secrets.token_hex(16))
    await store.run(
        home,
        "insert_unconfirmed",
        chain=asked.chain,
        deposit_no=last_no + 1,
        merchant_id=merchant_id,
        tx_hash=tx_hash,
        sender=asked.sender,
        recipient=recipient,
        amount_units=asked.amount_units,
        at_ms=at_ms,
    )
    return tx_hash


def read_hash(fields: Fields, context: OperationContext) -> str:
    """The `txHash` of a request."""
    return require(fields, "txHash", TX_HASH_LENGTH)


async def _confirm(call: Call, tx_hash: str) -> list[DataItem]:
    values = {"merchant_id": call.merchant_id, "tx_hash": tx_hash}
    confirm_ms = call.context.confirm_ms
    async with call.home.transaction():
        await store.run(call.home, "lock_deposits")
        waiting = await store.run(call.home, "find_unconfirmed", **values)
        if not waiting:
            known = await store.run(call.home, "find_confirmed", **values)
            if not known:
                _refuse_unknown()
            chain, recipient, amount_units, at_ms = known[0]
        else:
            chain, sender, recipient, amount_units = waiting[0]
            await store.run(call.home, "delete_unconfirmed", **values)
            now_ms = call.context.clock()
            place = (chain, bytes(sender), bytes(recipient), amount_units, now_ms, tx_hash)
            at_ms = (await add_deposit(call.home, *place)).at_ms
            await call.record("sandbox.confirm", f"transaction {tx_hash}")
    address = format_address(chain, bytes(recipient))
    return _answer(chain, tx_hash, address, amount_units, at_ms + confirm_ms)


async def _reorganise(call: Call, tx_hash: str) -> list[DataItem]:
    values = {"merchant_id": call.merchant_id, "tx_hash": tx_hash}
    async with call.home.transaction():
        await store.run(call.home, "lock_deposits")
        waiting = await store.run(call.home, "find_unconfirmed", **values)
        if not waiting:
            _refuse_unknown()
        await store.run(call.home, "drop_block", **values)
        await call.record("sandbox.reorganise", f"transaction {tx_hash}")
    chain, _, recipient, amount_units = waiting[0]
    return _answer(chain, tx_hash, format_address(chain, bytes(recipient)), amount_units, None)


def _refuse_unknown() -> NoReturn:
    msg = f"txHash: none of your deposits waits under it; only deposits with finality={MANUAL} do"
    refuse(ORDER_NOT_FOUND, msg)


def _answer(
    chain: str, tx_hash: str, address: str, amount_units: int, final_ms: int | None
) -> list[DataItem]:
    return [
        ("txHash", tx_hash, TEXT),
        ("chainType", chain, TEXT),
        ("address", address, TEXT),
        ("amount", format_units(amount_units), NUMBER),
        ("finalTime", None if final_ms is None else str(final_ms), NUMBER),
    ]


_HASH: Final = (("txHash", "of a deposit with `finality` = `manual`"),)
DEPOSIT: Final = Action(
    "deposit",
    _read,
    _deposit,
    (
        ("chainType", "the chain"),
        (
            "address",
            "of you or of one of your sub-users. Send `address` or `extUserId`, never both; "
            "with neither it is your own address",
        ),
        ("extUserId", "the sub-user, see `address`"),
        ("amount", "more than 0, at most 1000000 and 6 decimals; a small one is dust"),
        ("finality", "`auto` (default): final by itself; `manual`: when you call `confirm`"),
        (
            "screening",
            "`pass` (default); `hold`, `refuse`: screening holds or refuses it, and it is not credited until"
            " `release`",
        ),
    ),
    "USDT arrives at a deposit address. Answers `txHash`, and `finalTime` if it is known",
)
CONFIRM: Final = Action(
    "confirm", read_hash, _confirm, _HASH, "the deposit's block becomes final, and it is credited"
)
REORGANISE: Final = Action(
    "reorganise",
    read_hash,
    _reorganise,
    _HASH,
    "the deposit's block leaves the chain; `confirm` brings the deposit back in another block",
)
