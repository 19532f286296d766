"""The table of everything that waits for a person: each kind in words, who may act, and where.

Rules:
- A new kind is one `Source` here, with a function that lists its items. Inbox, counts and notifications
  follow.
- A text has no amount and no secret. Notifications use the same texts.
- The right is the one that the page behind the link checks.
"""

from collections.abc import Mapping
from typing import Final

from merchant_wallet.custody import two_person_changes as treasury_changes
from merchant_wallet.custody.cold import two_person_changes as cold_changes
from merchant_wallet.custody.rescues import two_person_changes as rescue_changes
from merchant_wallet.deposits import acts as deposit_acts
from merchant_wallet.exchange import acts as rate_acts
from merchant_wallet.merchants import acts as merchant_acts
from merchant_wallet.merchants import key_acts
from merchant_wallet.merchants.cells import kept_copies
from merchant_wallet.operators import access
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import inbox_cold, inbox_lists
from merchant_wallet.reporting.finance import closing
from merchant_wallet.reporting.finance.waiting import list_months_to_close
from merchant_wallet.reporting.inbox import BAD, INFO, Source
from merchant_wallet.screening import decisions as screening_decisions
from merchant_wallet.sub_users import audit_log as sub_user_log
from merchant_wallet.web.languages import N_
from merchant_wallet.web.proposal_rights import RIGHTS
from merchant_wallet.withdrawals import acts as payout_acts

PROPOSED: Final[Mapping[str, str]] = {
    "": N_("{who} proposes a change of {subject}"),
    inbox_lists.ALIKE: N_("{who} proposes an address that looks like another one: {ends}"),
    payout_acts.THAW: N_("{who} proposes to resume payouts on {subject}"),
    closing.CLOSE: N_("{who} proposes to close the month {subject}"),
    closing.RESTATE: N_("{who} proposes to restate the month {subject}"),
    rate_acts.SET: N_("{who} proposes another rate: {subject}"),
    merchant_acts.SET: N_("{who} proposes other settings of a merchant"),
    merchant_acts.RESUME: N_("{who} proposes to resume a suspended merchant"),
    kept_copies.KEEP: N_("{who} proposes which copy of a merchant's book is kept"),
    key_acts.ADD: N_("{who} proposes a new key of a merchant"),
    key_acts.ROLL: N_("{who} proposes a new secret of a merchant's key"),
    key_acts.SET: N_("{who} proposes other limits of a merchant's key"),
    sub_user_log.SET: N_("{who} proposes to loosen the limits of {subject}"),
    screening_decisions.RELEASE: N_("{who} proposes to release what screening holds"),
    deposit_acts.RELEASE: N_("{who} proposes to credit a held deposit"),
    treasury_changes.RECORD: N_("{who} proposes to record USDT that was moved"),
    treasury_changes.CORRECT: N_("{who} proposes to correct a record of moved USDT"),
    cold_changes.ADDRESS: N_("{who} proposes a cold wallet for {subject}"),
    cold_changes.LIMITS: N_("{who} proposes limits of hot money on {subject}"),
    cold_changes.TRANSFER: N_("{who} proposes a cold transfer on {subject}"),
    rescue_changes.TRANSFER: N_("{who} proposes a rescue: {subject}"),
    access.CREATE: N_("{who} proposes a new operator: {subject}"),
    access.RESET: N_("{who} proposes to reset the sign-in of {subject}"),
    access.ENABLE: N_("{who} proposes to enable {subject} again"),
    access.SET_ROLE: N_("{who} proposes another role for {subject}"),
}
"""Each kind of proposal in words. The first is for a kind that this version does not know, the second for a
look-alike address.
"""

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
        N_("Differences between books and chain"),
        {
            "": N_("Books and chain differ on {chain}"),
            "explained": N_(
                "The difference on {chain} is explained, but a person has to decide about its cause"
            ),
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
            "deprecated": N_(
                "The token on {chain} is replaced by another contract, and {count} orders wait: {why}"
            ),
        },
        "/console/payouts",
        Right.RECORD_TREASURY,
        inbox_lists.list_obstacles,
        tone=BAD,
    ),
    Source(
        "reading",
        N_("Chains that are not read"),
        {"": N_("Deposits on {chain} are not read")},
        "/console/safety",
        Right.RECORD_TREASURY,
        inbox_lists.list_unread_chains,
        tone=BAD,
    ),
    Source(
        "proposal",
        N_("Proposed changes"),
        PROPOSED,
        "/console/proposals/{number}",
        Right.DECIDE_PROPOSAL,
        inbox_lists.make_proposals(RIGHTS.get),
        counts_waits=True,
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
            inbox_lists.ALIKE: N_(
                "Withdrawal {order} on {chain} waits for approval. Its address looks like another one: {ends}"
            ),
        },
        "/console/withdrawals/{order_id}",
        Right.APPROVE_WITHDRAWAL,
        inbox_lists.list_approvals,
        is_shown_to_merchants=True,
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
        "sweep",
        N_("Failed sweeps"),
        {"": N_("Sweeps of {count} addresses on {chain} have failed")},
        "/console/safety",
        Right.SWEEP,
        inbox_lists.list_failed_sweeps,
    ),
    Source(
        "rescue",
        N_("Rescues that stand"),
        {
            "": N_("Rescue {number} on {chain} has been under way for long"),
            "failed": N_("Rescue {number} on {chain} has failed"),
        },
        "/console/rescues",
        Right.RECORD_TREASURY,
        inbox_cold.list_rescues,
    ),
    Source(
        "callback",
        N_("Parked callbacks"),
        {"": N_("{count} callbacks are parked")},
        "/console/callbacks?state=parked&merchant={merchant}",
        Right.RESEND_CALLBACK,
        inbox_lists.list_dead_letters,
        own_right=Right.RESEND_CALLBACK,
    ),
    Source(
        "secret",
        N_("Secrets that the platform's staff made"),
        {
            "": N_("The platform's staff made a secret of key {number}"),
            inbox_lists.ACCOUNT: N_("The platform's staff gave a person access as one of your people"),
        },
        "/console/merchants/{merchant}/keys",
        Right.CHANGE_SECRET,
        inbox_lists.list_staff_secrets,
        own_right=Right.CHANGE_SECRET,
        is_own_alone=True,
        tone=INFO,
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
        ends_alone=True,
    ),
)
"""Every kind, the most urgent first."""

BY_KIND: Final[Mapping[str, Source]] = {source.kind: source for source in SOURCES}
