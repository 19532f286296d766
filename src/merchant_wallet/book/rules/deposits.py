"""Credits of deposits. Pure.

Rules:
- A transfer is credited once, by one entry, to the owner of its address. A repeat returns the first outcome.
- A transaction is credited from one block. Its transfers in another block wait until a person releases them.
- A KFB wallet is credited at the current rate, rounded down. The exchange is part of the same entry. Without
  a rate the deposit waits.
- Deposits of a suspended merchant are credited too.
"""

import msgspec

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import compute_exchange_units
from merchant_wallet.book.chart import CHAIN_ID_OF, EXCHANGE_ID_OF, MERCHANT_USDT_ID
from merchant_wallet.book.commands import CreditDeposit
from merchant_wallet.book.journal import can_receive, post, record
from merchant_wallet.book.outcomes import (
    ADDRESS_UNKNOWN,
    ARRIVES_AS_ZERO,
    BALANCE_LIMIT,
    DEPOSIT_DIFFERS,
    DEPOSIT_ELSEWHERE,
    DEPOSIT_NOT_DUE,
    DEPOSIT_UNKNOWN,
    Credited,
    Outcome,
)
from merchant_wallet.book.rules.exchange import find_rate_in_force
from merchant_wallet.book.state import CallbackDue, Deposit, Draft, Posting

DEPOSIT = "deposit"


def credit(draft: Draft, command: CreditDeposit) -> Outcome:
    """Credit the sub-user that owns the address, or the merchant if the address is its own.

    Refuses, in this order: 40401, 40900, 42202 (not due, or credited from another block), 40402, 42203,
    40002, 42202 (a balance too large).
    """
    deposit = draft.deposits.get(command.key)
    if deposit is None:
        return DEPOSIT_UNKNOWN
    if (deposit.address, deposit.amount_units) != (command.address, command.amount_units):
        return DEPOSIT_DIFFERS
    if deposit.credited is not None:
        return deposit.credited
    if not deposit.is_due:
        return DEPOSIT_NOT_DUE
    if deposit.released_by is None and _settled_hash(draft, deposit) not in (None, deposit.block_hash):
        return DEPOSIT_ELSEWHERE
    user_id = draft.user_id_by_address.get(deposit.address)
    if user_id is None and not deposit.is_merchants:
        return ADDRESS_UNKNOWN
    if user_id is None or draft.sub_users[user_id].currency == USDT:
        target_id = MERCHANT_USDT_ID if user_id is None else user_id
        return _credit_as_sent(draft, deposit, command, target_id)
    return _credit_exchanged(draft, deposit, command, user_id)


def _settled_hash(draft: Draft, deposit: Deposit) -> str | None:
    """The block that the deposit's transaction was first credited from, in this batch or before."""
    return draft.settled_hashes.get((deposit.key.chain, deposit.key.tx_hash))


def encode_deposit_facts(deposit: Deposit, wants_callback: bool) -> str:
    """The facts of a deposit that the journal's hash covers besides its money."""
    facts = {
        "address": deposit.address.hex(),
        "chain": deposit.key.chain,
        "logIndex": deposit.key.log_index,
        "told": wants_callback,
        "txHash": deposit.key.tx_hash,
    }
    return msgspec.json.encode(facts).decode()


def callback_of(entry_id: int, at_ms: int) -> CallbackDue:
    """The callback about the deposit that an entry credited."""
    return CallbackDue(entry_id, 0, f"evt_{entry_id}_{DEPOSIT}", at_ms, DEPOSIT)


def _credit_as_sent(draft: Draft, deposit: Deposit, command: CreditDeposit, target_id: int) -> Outcome:
    source_id, amount = CHAIN_ID_OF[deposit.key.chain], deposit.amount_units
    if not (can_receive(draft, source_id, -amount) and can_receive(draft, target_id, amount)):
        return BALANCE_LIMIT
    posting = post(draft, source_id, target_id, USDT, amount)
    return _record(draft, deposit, command, (posting,), 0)


def _credit_exchanged(draft: Draft, deposit: Deposit, command: CreditDeposit, user_id: int) -> Outcome:
    rate_e8 = find_rate_in_force(draft, USDT, KFB)
    if isinstance(rate_e8, Refusal):
        return rate_e8
    amount = deposit.amount_units
    arrival = compute_exchange_units(amount, rate_e8)
    if arrival == 0:
        return ARRIVES_AS_ZERO
    source_id, bought_id, sold_id = CHAIN_ID_OF[deposit.key.chain], EXCHANGE_ID_OF[USDT], EXCHANGE_ID_OF[KFB]
    moves = ((source_id, -amount), (bought_id, amount), (sold_id, -arrival), (user_id, arrival))
    if not all(can_receive(draft, account_id, units) for account_id, units in moves):
        return BALANCE_LIMIT
    postings = (
        post(draft, source_id, bought_id, USDT, amount),
        post(draft, sold_id, user_id, KFB, arrival),
    )
    return _record(draft, deposit, command, postings, rate_e8)


def _record(
    draft: Draft, deposit: Deposit, command: CreditDeposit, postings: tuple[Posting, ...], rate_e8: int
) -> Credited:
    facts = encode_deposit_facts(deposit, command.wants_callback)
    entry = record(draft, DEPOSIT, postings, rate_e8=rate_e8, facts=facts)
    last = postings[-1]
    credited = Credited(entry.entry_id, last.currency, deposit.amount_units, last.amount_units, rate_e8)
    draft.deposits[deposit.key] = msgspec.structs.replace(deposit, credited=credited)
    draft.changes.credited.append(deposit.key)
    if deposit.released_by is None:
        draft.settled_hashes[deposit.key.chain, deposit.key.tx_hash] = deposit.block_hash
    if command.wants_callback:
        draft.changes.callbacks.append(callback_of(entry.entry_id, draft.now_ms))
    return credited
