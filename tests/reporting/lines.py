"""Rows of lists, for tests that need one row."""

from merchant_wallet.reporting.orders import OrderLine

ORDER = OrderLine(
    merchant_id=1,
    merchant_name="Shop",
    order_id=9,
    mc_order_id="w9",
    amount_units=60_000_000,
    fee_units=0,
    rate_e8=0,
    chain="TRC20",
    address="T",
    status=0,
    approved_ms=1,
    approved_by="operator:ben",
    deadline_ms=1,
    created_ms=0,
    finished_ms=None,
    notified_ms=None,
    tx_hash=None,
    first_approved_by=None,
    second_limit_units=None,
    is_merchant_active=True,
    is_taken_up=True,
    obstacle_kind=None,
    obstacle_cause=None,
    obstacle_ms=None,
    frozen_cause=None,
    frozen_ms=None,
    signed_no=0,
)
