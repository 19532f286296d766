"""The exchange of one of the merchant's currencies for the other. Pure (interface 4.7).

Rules:
- The received amount is rounded down, so no sequence of exchanges can gain.
- If the rates of both directions multiply to more than one, the exchange is refused. Setting such rates is
  refused already.
"""

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.money import RATE_SCALE, compute_exchange_units
from merchant_wallet.book.chart import EXCHANGE_ID_OF, MERCHANT_ID_OF
from merchant_wallet.book.commands import Exchange
from merchant_wallet.book.journal import can_receive, post, record
from merchant_wallet.book.outcomes import (
    ARRIVES_AS_ZERO,
    BALANCE_LIMIT,
    BELOW_MINIMUM_ARRIVAL,
    INSUFFICIENT,
    NO_RATE,
    ORDER_ID_TAKEN,
    POSITION_LIMIT,
    RATE_ALLOWS_ARBITRAGE,
    RATE_PAUSED,
    RATE_TOO_OLD,
    Exchanged,
    Outcome,
)
from merchant_wallet.book.state import Draft

EXCHANGE = "exchange"


def exchange(draft: Draft, command: Exchange) -> Outcome:
    """Exchange `amount` of one currency for the other at the current rate.

    Refuses, in this order: 40900, 42203, 40002, 42203 (minimum), 42202 (the exchange position), 42200, 42202
    (a balance too large).
    """
    earlier = draft.earlier_exchanges.get(command.mc_order_id) if command.mc_order_id is not None else None
    if earlier is not None:
        return earlier if _same(earlier, command) else ORDER_ID_TAKEN
    rate_e8 = find_rate_in_force(draft, command.send_currency, command.receive_currency)
    if isinstance(rate_e8, Refusal):
        return rate_e8
    arrival = compute_exchange_units(command.amount_units, rate_e8)
    refusal = _refuse(draft, command, arrival)
    return refusal if refusal is not None else _record(draft, command, arrival, rate_e8)


def _same(earlier: Exchanged, command: Exchange) -> bool:
    return (earlier.send_currency, earlier.receive_currency, earlier.amount_units) == (
        command.send_currency,
        command.receive_currency,
        command.amount_units,
    )


def is_too_old(set_ms: int | None, max_age_ms: int | None, at_ms: int) -> bool:
    """Whether a rate is too old to use. Without a maximum age it never is."""
    return max_age_ms is not None and set_ms is not None and at_ms - set_ms > max_age_ms


def find_rate_in_force(draft: Draft, send_currency: str, receive_currency: str) -> int | Refusal:
    """The current rate of a direction. Refuses 42203: none, paused, too old, or open to arbitrage."""
    rate = draft.rates.get((send_currency, receive_currency))
    if rate is None or rate.rate_e8 is None:
        return NO_RATE
    if rate.paused:
        return RATE_PAUSED
    if is_too_old(rate.set_ms, rate.max_age_ms, draft.now_ms):
        return RATE_TOO_OLD
    back = draft.rates.get((receive_currency, send_currency))
    if back is not None and back.rate_e8 is not None and rate.rate_e8 * back.rate_e8 > RATE_SCALE**2:
        return RATE_ALLOWS_ARBITRAGE
    return rate.rate_e8


def _refuse(draft: Draft, command: Exchange, arrival: int) -> Refusal | None:
    if arrival == 0:
        return ARRIVES_AS_ZERO
    if command.minimum_arrival_units is not None and arrival < command.minimum_arrival_units:
        return BELOW_MINIMUM_ARRIVAL
    desk = draft.balances[EXCHANGE_ID_OF[command.receive_currency]]
    if command.position_limit_units is not None and arrival - desk > command.position_limit_units:
        return POSITION_LIMIT
    if draft.balances[MERCHANT_ID_OF[command.send_currency]] < command.amount_units:
        return INSUFFICIENT
    takes = can_receive(draft, MERCHANT_ID_OF[command.receive_currency], arrival)
    takes = takes and can_receive(draft, EXCHANGE_ID_OF[command.send_currency], command.amount_units)
    return (
        None
        if takes and can_receive(draft, EXCHANGE_ID_OF[command.receive_currency], -arrival)
        else BALANCE_LIMIT
    )


def _record(draft: Draft, command: Exchange, arrival: int, rate_e8: int) -> Exchanged:
    send, receive = command.send_currency, command.receive_currency
    postings = (
        post(draft, MERCHANT_ID_OF[send], EXCHANGE_ID_OF[send], send, command.amount_units),
        post(draft, EXCHANGE_ID_OF[receive], MERCHANT_ID_OF[receive], receive, arrival),
    )
    entry = record(draft, EXCHANGE, postings, mc_order_id=command.mc_order_id, rate_e8=rate_e8)
    outcome = Exchanged(entry.entry_id, send, receive, command.amount_units, arrival, rate_e8)
    if command.mc_order_id is not None:
        draft.earlier_exchanges[command.mc_order_id] = outcome
    return outcome
