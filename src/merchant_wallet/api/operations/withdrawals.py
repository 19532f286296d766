"""`createMerchantWithdrawOrder`, `queryOrder` and `getWithdrawFee` on the wire (interface 4.3, 4.4, 4.8)."""

import re

from merchant_wallet.api.amounts import require_cent_amount
from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, require, require_long, require_order_id
from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.codes import (
    ADDRESS_UNUSABLE,
    CHAIN_UNSUPPORTED,
    CURRENCY_UNSUPPORTED,
    Refused,
    refuse,
)
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.base.notify_url import check_notify_url
from merchant_wallet.book.commands import CreateWithdrawal, QuoteWithdrawal, ReadWithdrawal
from merchant_wallet.book.outcomes import FUNDS_LOST, Quoted, Withdrawal
from merchant_wallet.merchants.records import Merchant

_match_whole = re.compile(r"0|[1-9][0-9]{0,15}").fullmatch


def _require_usdt(fields: Fields, max_length: int) -> str:
    currency = require(fields, "currency", max_length)
    if currency != USDT:
        refuse(CURRENCY_UNSUPPORTED, "currency must be USDT")
    return currency


def _require_address(fields: Fields, chain: str, context: OperationContext) -> tuple[str, bool]:
    """The address, and whether it is a wallet of ours."""
    address = require(fields, "address", 64)
    try:
        raw = parse_address(chain, address)
    except ValueError as error:
        refuse(ADDRESS_UNUSABLE, f"address is not valid on {chain}: {error}")
    if raw in context.forbidden_addresses:
        raise Refused(FUNDS_LOST)
    return address, raw in context.own_wallets


def _prepare_creation(merchant: Merchant, fields: Fields, context: OperationContext) -> CreateWithdrawal:
    amount_units = require_cent_amount(fields)
    chain = require(fields, "chainType", 20)
    if chain not in context.chains:
        refuse(CHAIN_UNSUPPORTED, f"chainType must be {' or '.join(context.chains)}")
    _require_usdt(fields, 20)
    mc_order_id = require_order_id(fields, "mcOrderId", 20)
    address, is_own_wallet = _require_address(fields, chain, context)
    notify_url = require(fields, "notifyUrl", 100)
    check_notify_url(notify_url, sandbox=context.sandbox)
    return CreateWithdrawal(
        mc_order_id=mc_order_id,
        amount_units=amount_units,
        chain=chain,
        address=address,
        notify_url=notify_url,
        fee_rate_e8=merchant.withdraw_fee_rate_e8,
        fee_minimum_units=merchant.withdraw_fee_min_units,
        approval_limit_units=merchant.approval_limit_units,
        daily_limit_units=merchant.daily_limit_units,
        allowed=merchant.allows_address(address),
        deadline_after_ms=context.approval_deadline_ms,
        second_limit_units=merchant.second_approval_limit_units,
        is_own_wallet=is_own_wallet,
    )


def _answer_creation(merchant: Merchant, order: Withdrawal, context: OperationContext) -> list[DataItem]:
    return [
        ("orderId", str(order.order_id), NUMBER),
        ("mcOrderId", order.mc_order_id, TEXT),
        ("amount", format_units(order.amount_units), NUMBER),
        ("amountArrival", format_units(order.arrival_units), NUMBER),
        ("currency", USDT, TEXT),
        ("chainType", order.chain, TEXT),
        ("address", order.address, TEXT),
        ("txnStatus", str(order.status), TEXT),
    ]


def _prepare_query(merchant: Merchant, fields: Fields, context: OperationContext) -> ReadWithdrawal:
    order_id = require_long(fields, "orderId")
    mc_order_id = require(fields, "mcOrderId", 20)
    # Too large for a bigint, so no order has it. 0 is not an id either.
    return ReadWithdrawal(order_id if order_id <= MAX_ID else 0, mc_order_id)


def _answer_query(merchant: Merchant, order: Withdrawal, context: OperationContext) -> list[DataItem]:
    notified = None if order.notified_ms is None else str(order.notified_ms)
    return [
        ("orderId", str(order.order_id), NUMBER),
        ("currency", USDT, TEXT),
        ("amount", format_units(order.amount_units), NUMBER),
        ("rate", format_rate(order.rate_e8), NUMBER),
        ("fee", format_units(order.fee_units), NUMBER),
        ("amountArrival", format_units(order.arrival_units), NUMBER),
        ("txnTime", str(order.created_ms), NUMBER),
        ("txnStatus", str(order.status), TEXT),
        ("createTime", str(order.created_ms), NUMBER),
        ("mcOrderId", order.mc_order_id, _is_long(order.mc_order_id)),
        ("notifyTime", notified, NUMBER),
        ("extUserId", None, TEXT),
        ("chainType", order.chain, TEXT),
    ]


def _is_long(mc_order_id: str) -> bool:
    """Whether the id is a whole number that every JSON reader keeps exactly. Then it is sent as a number."""
    return _match_whole(mc_order_id) is not None and int(mc_order_id) <= MAX_ID


def _prepare_quote(merchant: Merchant, fields: Fields, context: OperationContext) -> QuoteWithdrawal:
    amount_units = require_cent_amount(fields, max_length=15)
    _require_usdt(fields, 15)
    return QuoteWithdrawal(amount_units, merchant.withdraw_fee_rate_e8, merchant.withdraw_fee_min_units)


def _answer_quote(merchant: Merchant, quoted: Quoted, context: OperationContext) -> list[DataItem]:
    return [
        ("amount", format_units(quoted.amount_units), NUMBER),
        ("amountArrival", format_units(quoted.amount_units - quoted.fee_units), NUMBER),
        ("fee", format_units(quoted.fee_units), NUMBER),
        ("rate", format_rate(quoted.rate_e8), NUMBER),
    ]


CREATE = Operation("createMerchantWithdrawOrder", _prepare_creation, _answer_creation, sign_length=20)
QUERY = Operation("queryOrder", _prepare_query, _answer_query, only_reads=True)
QUOTE = Operation("getWithdrawFee", _prepare_quote, _answer_quote, only_reads=True)
