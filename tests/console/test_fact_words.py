"""Each act's entry in the audit log is a sentence, in English and in Chinese, without program text."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
from tests.console.day_of_acts import FACTS as FACTS_OF_ACTS
from tests.console.test_doors import BESIDE
from tests.rows import each_row

from merchant_wallet.audit.records import AuditEntry
from merchant_wallet.book.commands import Adjust, Approve, Cancel, Refund, WithdrawFees
from merchant_wallet.console.audit_words import ACTIONS, SANDBOX_ACTIONS, AuditWords, say_entry
from merchant_wallet.console.fact_words import FACTS, say_fact, say_fact_name, say_facts
from merchant_wallet.web.languages import Language, translate

NOW_MS: Final = 1_764_412_800_123
COMMANDS: Final = (
    Approve(8_589_934_595, "operator:ann", NOW_MS),
    Cancel(8_589_934_595, "cli:root", even_frozen=True),
    Refund(8_589_934_595),
    Adjust("KFB", -12_500_000, "a double payment", "operator:ann", "bank-7", "alice"),
    WithdrawFees("USDT", None, "month's end", "cli:root"),
)
TOLD: Final = [name for sides in FACTS_OF_ACTS.values() for side in sides for name in side.split()]
"""The facts of each act that has more than one door, from the table that the doors are tested with."""
ODD: Final[Mapping[str, Any]] = {
    "leftBehind": {"orders_open": 3, "evidenceSha256": "5f5f"},
    "someNewThingMs": NOW_MS,
    "some_units": 2_500_000,
    "causes": ["book 1001: an entry is missing", "signer"],
    "nested": [{"txnStatus": 4, "pausedSinceMs": NOW_MS}],
    "empty": {},
    "rule": "last_seen_first",
}
"""Facts of another version, which have no words."""
ENGLISH, CHINESE = (partial(translate, language) for language in Language)
is_program_text = re.compile(
    r"[{}\[\]]"
    r"|'[a-z]\w*':"  # a dict
    r"|\b[a-z]+_[a-z_]+\b"  # snake_case
    r"|\b[a-z]+[A-Z]\w*"  # camelCase
    r"|\b[0-9]{13}\b"  # milliseconds
    r"|\b(None|True|False|null|true|false)\b"
).search


def make_facts() -> dict[str, Any]:
    """Every fact that an act records, each with a value that a program would print badly."""
    values: dict[str, Any] = dict.fromkeys((*TOLD, *FACTS, *BESIDE), "x")
    values |= {name: NOW_MS for name in values if name.endswith(("Ms", "_ms"))}
    values |= {name: "0.005" for name in values if "ee-rate" in name or "FeeRate" in name}
    values |= {"maxAgeMs": 90_000, "overlapMs": 86_400_000, "amountUnits": 5_000_000, "day": 20_000}
    values |= {
        "txnStatus": "4",
        "state": "restated",
        "status": "suspended",
        "role": "owner",
        "way": "elsewhere",
    }
    values |= {"paused": True, "exists": False, "stoppedBy": None, "months": ["2026-10", "2026-11"], "no": 3}
    values |= {"direction": "to_hot", "merchantId": 1001, "approvedBy": "operator:ann", "alone": True}
    return {**values, **ODD}


def make_entry(action: str, before: Any, after: Any) -> AuditEntry:
    subject = "merchant 1001" if action.startswith("merchant") else "order 8589934595"
    return AuditEntry(7, NOW_MS, "operator:ann", action, subject, 1001, "192.0.2.1", before, after, b"")


def test_who_stopped_payouts_is_told_before_each_cause() -> None:
    facts = {"stoppedBy": "cli:root: a look; reconciliation: less is held"}
    said = say_fact("stoppedBy", facts, {}, ENGLISH)
    assert said == "root, on the command line: a look; reconciliation: less is held"


def test_every_act_is_a_sentence_without_program_text_in_both_languages() -> None:
    facts, names = make_facts(), {1001: "Lantern & Sons"}
    turned = {name: not value if isinstance(value, bool) else None for name, value in facts.items()}
    asked = [msgspec.to_builtins(command) for command in COMMANDS]
    for say in (ENGLISH, CHINESE):
        for action in (*ACTIONS, *SANDBOX_ACTIONS, "merchant.set.propose", "withdrawal.approve.asked"):
            for before, after in (
                (turned, facts),
                (None, facts),
                (facts, None),
                *((None, one) for one in asked),
            ):
                sentence = say_entry(make_entry(action, before, after), names, say)
                found = is_program_text(sentence)
                assert found is None, (action, sentence)
        words = AuditWords(say)
        assert is_program_text(words.say_facts(facts)) is None
        assert words.say_facts(None) == ""


@each_row(
    ("action", "after", "said"),
    [
        (
            "withdrawal.cancel.asked",
            msgspec.to_builtins(Cancel(8_589_934_595, "operator:ann")),
            "ann asked to cancel a withdrawal: order 8589934595.",
        ),
        (
            "withdrawal.cancel",
            {"done": True, "txnStatus": 4},
            "ann cancelled a withdrawal: order 8589934595. Status: Cancelled",
        ),
        (
            "book.debit.asked",
            msgspec.to_builtins(Adjust("KFB", -12_500_000, "paid twice", "cli:root", "alice", "bank-7")),
            "ann asked to debit a merchant's balance: order 8589934595. Currency: KFB; Amount: −12.50 KFB;"
            " Reason: paid twice; Person: root, on the command line; Sub-user: alice; Reference: bank-7",
        ),
        (
            "book.debit.refused",
            {"refused": 42200, "reason": "amount: more than the available balance"},
            "ann asked to debit a merchant's balance, which was refused: order 8589934595."
            " Refused with code: 42200; Reason: amount: more than the available balance",
        ),
        (
            "withdrawal.approve",
            {"done": True, "txnStatus": 0, "approvedBy": "operator:ann"},
            "ann approved a withdrawal: order 8589934595. Status: Approved, not yet paid; Approved by: ann",
        ),
        ("callback.resend", {"resent": 0}, "ann sent a callback again: order 8589934595. Sent again: 0"),
        (
            "wallet.thaw",
            {"stops": [{"cause": "a signer is away", "sinceMs": NOW_MS}]},
            "ann resumed payouts: order 8589934595."
            " Stops: Cause: a signer is away; Since: 2025-11-29 10:40:00.123Z",
        ),
    ],
)
def test_an_entry_says_what_happened_and_nothing_twice(action: str, after: Any, said: str) -> None:
    assert say_entry(make_entry(action, None, after), {}, ENGLISH) == said


def test_what_is_no_sentence_would_be_found() -> None:
    told = (
        "{'a': 1}",
        "eligible_ms: 0",
        "txnStatus 4",
        '{"paused":true}',
        "since 1764412800123",
        "[1]",
        "None",
    )
    assert all(map(is_program_text, told))


def test_each_fact_of_the_table_of_acts_has_words_in_chinese() -> None:
    names = {*TOLD, *BESIDE, *(name for command in COMMANDS for name in command.__struct_fields__)}
    lacking = [name for name in names if name not in FACTS]
    assert lacking == []
    assert all(say_fact_name(name, CHINESE) != say_fact_name(name, ENGLISH) for name in names & FACTS.keys())


@each_row(
    ("facts", "said"),
    [
        ({"transferFeeRate": "0.005"}, "Transfer fee: 0.5%"),
        (
            {"txnStatus": 4, "approvedBy": "cli:ann"},
            "Status: Cancelled; Approved by: ann, on the command line",
        ),
        ({"eligible_ms": NOW_MS}, "Approvals count from: 2025-11-29 10:40:00.123Z"),
        ({"currency": "KFB", "signed_units": -12_500_000}, "Currency: KFB; Amount: −12.50 KFB"),
        ({"amount": "-5000.5"}, "Amount: −5,000.50 USDT"),
        ({"amount": "0.123456789"}, "Amount: 0.123456789 USDT"),
        ({"limitDay": "12000.5", "currency": "KFB"}, "Limit per day: 12,000.50 KFB; Currency: KFB"),
        ({"limitDebit": "5000", "limitDay": None}, "Limit per debit: 5,000.00; Limit per day: no limit"),
        (
            {"maxAgeMs": 90_000, "overlapMs": None},
            "Holds for: 1.5 min; The old secret works for another: It ends now",
        ),
        (
            {"fee_rate_e8": 500_000, "deadline_after_ms": 86_400_000, "daily_limit_units": None},
            "Withdrawal fee: 0.5%; Approved within: 24 h; Limit of orders a day: no limit",
        ),
        (
            {"txnStatus": 0, "approvedBy": "operator:ben"},
            "Status: Approved, not yet paid; Approved by: ben",
        ),
        ({"approvedBy": "limit"}, "Approved by: nobody: it is below the limit"),
        (
            {"currencyMode": "KFB", "actor": "sandbox:mk"},
            "Currencies: USDT and KFB; Person: a test with the key mk",
        ),
        ({"leftBehind": {"orders": 3}}, "Left behind: Orders: 3"),
        (
            {"dailyLimit": None, "months": ["2026-10", "2026-11"]},
            "Limit of orders a day: no limit; Months: 2026-10, 2026-11",
        ),
        ({"merchantId": 1001, "day": 20_000}, "Merchant: Lantern; Day: 2024-10-04"),
    ],
)
def test_facts_have_names_and_units(facts: dict[str, Any], said: str) -> None:
    assert say_facts(facts, {1001: "Lantern"}, ENGLISH) == said


@each_row(
    ("facts", "said"),
    [
        (
            {"refused": 40002, "reason": "amount must be USDT or KFB"},
            "拒绝代码: 40002; 理由: amount 须为 USDT 或 KFB",
        ),
        ({"reason": "amount must be USDT or KFB"}, "理由: amount must be USDT or KFB"),
        ({"frozen": True, "cause": "a test of the sandbox froze it"}, "已冻结: 是; 原因: 沙盒测试将其冻结"),
        (
            {"allowed": [], "minimum_arrival_units": 2_500_000},
            "允许的提现地址: 任何地址; 最低到账金额: 2.50 USDT",
        ),
        ({"second factor": "first code"}, "第二重验证: 验证器的首个验证码"),
        ({"state": "accepted", "month": "2026-10"}, "状态: 已接受; 月份: 2026-10"),
    ],
)
def test_causes_refusals_and_states_are_said_in_chinese(facts: dict[str, Any], said: str) -> None:
    assert say_facts(facts, {}, CHINESE) == said


def test_an_entry_is_one_sentence_with_what_was_and_what_is() -> None:
    entry = make_entry(
        "merchant.set", {"withdrawFeeRate": "0"}, {"withdrawFeeRate": "0.004", "reason": "contract"}
    )
    assert say_entry(entry, {1001: "Lantern"}, ENGLISH) == (
        "ann changed a merchant's settings: Lantern. Withdrawal fee: 0% → 0.4%; Reason: contract"
    )
    assert say_entry(entry, {1001: "Lantern"}, CHINESE) == (
        "ann 更改了商户设置: Lantern. 提现手续费: 0% → 0.4%; 理由: contract"
    )
    assert say_fact("reason", {}, {}, ENGLISH) is None


def test_a_moment_that_no_calendar_has_is_still_told() -> None:
    assert say_facts({"frozenMs": 10**17}, {}, ENGLISH) == f"Frozen since: {10**17} ms"
