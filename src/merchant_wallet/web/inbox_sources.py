"""The table of everything that waits for a person: each kind in words, who may act, and where.

Rules:
- A new kind is one `Source` here, with a function that lists its items. Inbox, counts and notifications
  follow.
- A text has no amount and no secret. Notifications use the same texts.
- The right is the one that the page behind the link checks.
"""

from collections.abc import Mapping
from typing import Final

from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import inbox_cold, inbox_lists
from merchant_wallet.reporting.finance.waiting import list_months_to_close
from merchant_wallet.reporting.inbox import BAD, INFO, Source
from merchant_wallet.web.languages import N_
from merchant_wallet.web.proposal_rights import RIGHTS

SOURCES: Final[tuple[Source, ...]] = (
    Source(
        "stop",
        N_("Stops in force"),
        {
            "": N_("Payouts on {chain} are stopped by {who}"),
            "wallet": N_("The hot wallet on {chain} is frozen"),
            "rollback": N_("The database was rolled back or rewritten: nothing is paid"),
        },
        "/console/payouts",
        Right.STOP_PAYOUTS,
        inbox_lists.list_stops,
        tone=BAD,
    ),
    Source(
        "frozen",
        N_("Frozen orders"),
        {"": N_("Order {order_id} on {chain} is frozen until an operator has looked")},
        "/console/withdrawals/{order_id}",
        Right.THAW,
        inbox_lists.list_frozen,
        is_shown_to_merchants=True,
        tone=BAD,
    ),
    Source(
        "difference",
        N_("Unexplained differences"),
        {
            "": N_("Books and chain differ on {chain}"),
            "failed": N_("Books and chain could not be compared on {chain}"),
        },
        "/console/reconciliation/{chain}",
        Right.RECORD_TREASURY,
        inbox_lists.list_differences,
        tone=BAD,
    ),
    Source(
        "obstacle",
        N_("Low funds, gas and other obstacles"),
        {
            "": N_("An obstacle on {chain} keeps {count} orders waiting"),
            "funds": N_("The hot wallet on {chain} holds too little for {count} orders"),
            "fuel": N_(
                "The hot wallet on {chain} holds too little coin for the network fee of {count} orders"
            ),
        },
        "/console/payouts",
        Right.RECORD_TREASURY,
        inbox_lists.list_obstacles,
        tone=BAD,
    ),
    Source(
        "month",
        N_("Months to close"),
        {
            "": N_("The month {month} is prepared and waits to be closed"),
            "wrong": N_("The month {month} does not add up"),
        },
        "/console/finance/months/{month}",
        Right.CLOSE_MONTH,
        list_months_to_close,
    ),
    Source(
        "cold",
        N_("Cold money"),
        {
            inbox_cold.ABOVE: N_("More is hot on {chain} than its limit"),
            inbox_cold.BELOW: N_("The hot wallet on {chain} needs a refill"),
            inbox_cold.SIGN: N_("Cold transfer {number} on {chain} waits to be signed elsewhere"),
            inbox_cold.WAITS: N_("Cold transfer {number} on {chain} waits"),
        },
        "/console/cold",
        Right.RECORD_TREASURY,
        inbox_cold.list_cold,
    ),
    Source(
        "approval",
        N_("Withdrawals to approve"),
        {
            "": N_("Withdrawal {order} on {chain} waits for approval"),
            "second": N_("Withdrawal {order} on {chain} waits for the second approval"),
        },
        "/console/withdrawals/{order_id}",
        Right.APPROVE_WITHDRAWAL,
        inbox_lists.list_approvals,
        is_shown_to_merchants=True,
        counts_waits=True,
    ),
    Source(
        "proposal",
        N_("Proposed changes"),
        {"": N_("{who} proposes a change of {subject}")},
        "/console/proposals/{number}",
        Right.DECIDE_PROPOSAL,
        inbox_lists.make_proposals(RIGHTS.get),
        counts_waits=True,
    ),
    Source(
        "adjustment",
        N_("Adjustments"),
        {
            "": N_("{who} proposes adjustment {number}"),
            "unfinished": N_("Adjustment {number} was accepted, and its result is not known yet"),
        },
        "/console/adjustments/{number}",
        Right.DECIDE_ADJUSTMENT,
        inbox_lists.list_adjustments,
        counts_waits=True,
    ),
    Source(
        "deposit",
        N_("Held deposits"),
        {"": N_("A deposit on {chain} is held until a person decides")},
        "/console/deposits/{chain}/{tx_hash}/{log_index}",
        Right.RECORD_TREASURY,
        inbox_lists.list_held_deposits,
        is_shown_to_merchants=True,
    ),
    Source(
        "screening",
        N_("Held by screening"),
        {
            "": N_("Screening holds a deposit on {chain} until a person decides"),
            "order": N_("Screening holds a payout on {chain} until a person decides"),
        },
        "/console/screening/{screening_no}",
        Right.DECIDE_SCREENING,
        inbox_lists.list_held_screenings,
    ),
    Source(
        "callback",
        N_("Callbacks given up"),
        {"": N_("{count} callbacks were given up")},
        "/console/callbacks?state=parked&merchant={merchant}",
        Right.RESEND_CALLBACK,
        inbox_lists.list_dead_letters,
        own_right=Right.RESEND_CALLBACK,
    ),
    Source(
        "sign-in",
        N_("Failed sign-ins"),
        {
            "": N_("{count} sign-ins failed within a day: {subject}"),
            inbox_lists.AGAIN: N_("{count} more sign-ins failed since {who} looked: {subject}"),
        },
        "/console/audit?action=operator.sign_in_failed",
        Right.MANAGE_OPERATORS,
        inbox_lists.list_failed_sign_ins,
        seen="/console/inbox/sign-ins/seen",
    ),
    Source(
        "unreached",
        N_("Notifications that can't be delivered"),
        {
            "email": N_("Messages to {name} can't be delivered by e-mail"),
            "webhook": N_("Messages to {name} can't be delivered by webhook"),
        },
        "/console/operators/{operator_id}",
        Right.MANAGE_OPERATORS,
        inbox_lists.list_unreached,
    ),
    Source(
        "dust",
        N_("Deposits too small to credit"),
        {"": N_("{count} deposits on {chain} wait until more arrives")},
        "/console/deposits?status=dust&chain={chain}",
        Right.CHANGE_MERCHANT,
        inbox_lists.list_dust,
        is_shown_to_merchants=True,
        tone=INFO,
    ),
)
"""Every kind, the most urgent first."""

BY_KIND: Final[Mapping[str, Source]] = {source.kind: source for source in SOURCES}
