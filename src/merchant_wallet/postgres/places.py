"""Which tables are the platform's and which belong to a cell, the tables of many merchants' books.

- Home: one row or one order for the whole platform. Home tables are never copied.
- Cell: what commits with a book. Each table belongs to exactly one of the two.
- Mirrored: home tables that every cell may read under the same name. Only home writes them.
- A statement touches tables of one place. A test checks every query.
"""

from typing import Final

HOME: Final = frozenset(
    [
        "approved_sum",
        "asked_act",
        "audit_entry",
        "audit_head",
        "brand_logo",
        "cancel_signed",
        "cell",
        "cell_move",
        "chain_block",
        "chain_cursor",
        "chain_rewind",
        "chain_transfer",
        "checkpoint_key",
        "cold_limit",
        "cold_signed",
        "cold_transfer",
        "cold_wallet",
        "custody_address",
        "custody_cursor",
        "custody_movement",
        "custody_remainder",
        "custody_survey",
        "escalation_step",
        "escalation_time",
        "failed_sign_in",
        "failed_sign_in_seen",
        "hot_wallet",
        "id_range",
        "instance",
        "invoice",
        "issued_address",
        "job",
        "kept_copy",
        "lost_range",
        "lost_xpub",
        "merchant",
        "merchant_key",
        "merchant_key_secret",
        "merchant_key_use",
        "merchant_move",
        "merchant_secret",
        "month_book",
        "month_report",
        "network_fee",
        "network_fee_cursor",
        "notification",
        "notification_choice",
        "notification_contact",
        "notification_told",
        "operator",
        "operator_failure",
        "operator_known_source",
        "operator_recovery_code",
        "operator_session",
        "operator_wait",
        "order_trace",
        "payout",
        "payout_reservation",
        "payout_signed",
        "payout_stop",
        "proposal",
        "rate",
        "rate_history",
        "reconciliation",
        "refused_request",
        "request_log",
        "request_minute",
        "request_usage",
        "rescue",
        "rollback_acceptance",
        "rollback_evidence",
        "sandbox_callback",
        "sandbox_count",
        "sandbox_deposit",
        "sandbox_refund",
        "sandbox_transfer",
        "sandbox_unconfirmed",
        "schema_migration",
        "screening",
        "screening_question",
        "side_role",
        "staff_secret",
        "superseded_book",
        "superseded_month",
        "sweep",
        "sweep_signed",
        "test_event",
        "treasury_movement",
        "wallet_nonce",
        "worker_report",
        "xpub_pool",
    ]
)
"""Tables of the platform."""

CELL: Final = frozenset(
    [
        "account",
        "archived_month",
        "archived_order",
        "book",
        "callback",
        "callback_attempt",
        "callback_pause",
        "cell_state",
        "chain_position",
        "credited_transaction",
        "daily_figure",
        "daily_movement",
        "deposit",
        "deposit_credit",
        "entry",
        "figure_cursor",
        "merchant_address",
        "nonce",
        "posting",
        "reference_state",
        "sub_user",
        "wallet_address",
        "wallet_session",
        "withdrawal",
        "withdrawal_step",
    ]
)
"""Tables of the books."""

MIRRORED: Final = frozenset({"merchant", "rate", "rollback_evidence"})
"""Home tables that the queries of a cell may read. An apart cell has copies, `merchant` with some columns."""

OF_EACH_SCHEMA: Final = frozenset({"schema_migration", "side_role"})
"""Tables that say something about the schema itself. An apart cell has its own."""

APART_CELL: Final = CELL | MIRRORED | OF_EACH_SCHEMA
"""All tables of an apart cell's schema."""
