"""A day of acts: each act that has more than one door, with its facts in the audit log and its doors."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from tests.console.conftest import ConsoleUser
from tests.console.money_scene import open_sweep
from tests.console.test_deposits import arrive
from tests.console.test_merchants import settings_form
from tests.console.test_screening import hold
from tests.console.test_withdrawals import Till

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.book.commands import Approve, Fail, TakeUp
from merchant_wallet.merchants.records import OPERATIONS
from merchant_wallet.screening.facts import PayoutFacts
from merchant_wallet.web.proposal_rights import RIGHTS

WHY: Final = "contract of 3 March"
RATE: Final = "rate paused maxAgeMs"
ROLE: Final = "role merchantId"
CREDENTIALS: Final = "enrolled newCredentials"
SCREENED: Final = "state round orderId amountUnits"
TRANSFER: Final = "direction amount from to way transferId"
MOVEMENT: Final = "recorded chain direction amount txHash no"
LIMITS: Final = "refillBelow target mostHot"


class Door(Protocol):
    """One way to act on the platform: a shop's till, and what the texts of a step are filled in with."""

    till: Till
    values: dict[str, Any]
    orders: list[int]
    """Withdrawals that wait for approval."""

    @property
    def owner(self) -> ConsoleUser: ...
    def next_number(self) -> int: ...


class Step(NamedTuple):
    """One act: the arguments at the terminal, and the form in the console.

    `{…}` is filled in. `own`: a merchant's own person has the form too. `arrange` comes before it.
    """

    action: str
    terminal: str
    path: str
    form: dict[str, Any]
    own: bool = False
    arrange: Callable[[Door], None] | None = None


def forget_cold_transfers(door: Door) -> None:
    door.till.platform.rows("delete from cold_transfer")


def sign_months(door: Door) -> None:
    """The month that the step before has closed. Each door has one of its own, and no later one is closed."""
    door.till.platform.rows(
        "update month_report set closed_ms = 1, manifest = '{}', signature = '00'"
        " where accepted_ms is not null"
    )


def hold_deposit(door: Door) -> None:
    door.values["tx"] = arrive(door.till.shop, "held")


def hold_order(door: Door) -> None:
    facts = PayoutFacts(
        door.till.shop.merchant_id, door.next_number(), "a", "ERC20", b"p" * 20, 5_000_000, 4_000_000, 1
    )
    door.values["screening"] = hold(door.till.platform, facts).screening_no


def take_order(door: Door) -> None:
    door.values["order"] = door.orders.pop()


def fail_order(door: Door) -> None:
    take_order(door)
    number = door.values["order"]
    for command in (Approve(number, "cli:ann"), TakeUp(number), Fail(number, "the token refuses it")):
        door.till.shop.ask_book(command)


def fail_sign_ins(door: Door) -> None:
    minute_ms, subject = now_ms() // 60_000 * MINUTE_MS, f"operator {door.values['op']}"
    door.till.platform.rows(
        "insert into failed_sign_in (merchant_id, minute_ms, subject, factor, source, failures, last_ms)"
        " values (0, %s, %s, 'password', '192.0.2.1', 12, %s)",
        *(minute_ms, subject, minute_ms),
    )
    door.values["day"] = minute_ms // 86_400_000


def have_read(door: Door) -> None:
    door.till.platform.rows(
        "insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms)"
        " values ('TRC20', 5000, 'x', 5000, 'x', 1) on conflict (chain) do update set final_number = 5000,"
        " head_number = 5000"
    )


def begin_sweep(door: Door) -> None:
    door.values["sweep"] = open_sweep(door.till.platform, door.next_number().to_bytes(20, "big"))


def freeze_payout(door: Door) -> None:
    door.till.freeze(door.values["order"])


def name_transfer(door: Door) -> None:
    ((number,),) = door.till.platform.rows("select max(transfer_id) from cold_transfer")
    door.values["transfer"] = number


def name_record(door: Door) -> None:
    ((door.values["record"],),) = door.till.platform.rows("select max(movement_no) from treasury_movement")


def fill_settings(door: Door) -> None:
    door.values["settings"] = settings_form(door.owner, door.till.shop)


def name_key(door: Door) -> None:
    (row,) = door.till.platform.rows(
        "select max(key_no) from merchant_key where merchant_id = %s", door.till.shop.merchant_id
    )
    door.values["key"] = row[0]


def name_operator(door: Door) -> None:
    ((number,),) = door.till.platform.rows(
        "select operator_id from operator where name = %s", door.values["op"]
    )
    door.values["op_id"] = number


MERCHANT: Final = "/console/merchants/{shop}"
OPERATOR: Final = "/console/operators/{op_id}"
FACTS: Final[Mapping[str, tuple[str, str]]] = {
    "rate.set": (RATE, RATE),
    "rate.pause": (RATE, RATE),
    "rate.resume": (RATE, RATE),
    "rate.remove": (f"{RATE} platformRate", f"{RATE} platformRate"),
    "merchant.create": ("", "name currencyMode"),
    "merchant.set": ("secondApprovalLimit", "secondApprovalLimit"),
    "merchant.suspend": ("status", "status"),
    "merchant.resume": ("status", "status"),
    "merchant.end_old_secret": ("", "ended"),
    "merchant.add_key": ("", "name operations networks"),
    "merchant.set_key": ("networks", "networks"),
    "merchant.roll_key": ("", "overlapMs"),
    "merchant.revoke_key": ("name", "revoked"),
    "operator.create": ("", ROLE),
    "operator.end_sessions": ("", "ended"),
    "operator.reset": (CREDENTIALS, CREDENTIALS),
    "operator.disable": ("status", "status"),
    "operator.enable": ("status", "status"),
    "operator.set_role": (ROLE, ROLE),
    "operator.see_failures": ("", "failures day"),
    "sub_user.set": ("paused limitDebit limitDay", "paused limitDebit limitDay"),
    "sub_user.reset_pin": ("hadPin", ""),
    "callback.pause": ("", "paused"),
    "callback.resume": ("", "resumed"),
    "callback.resend": ("", "resent"),
    "withdrawal.approve": ("", "done txnStatus approvedBy"),
    "withdrawal.thaw": ("frozen cause frozenMs", "frozen"),
    "withdrawal.cancel": ("", "done txnStatus"),
    "withdrawal.refund": ("", "done txnStatus approvedBy"),
    "wallet.freeze": ("", ""),
    "wallet.thaw": ("stoppedBy stops frozenMs", "stoppedBy"),
    "screening.release": (SCREENED, SCREENED),
    "screening.ask_again": (SCREENED, SCREENED),
    "screening.refuse": (SCREENED, SCREENED),
    "deposits.release": ("status block cause", "status"),
    "deposits.drop": ("status block cause", "status"),
    "deposits.rescan": ("", "firstBlock"),
    "sweep.end": ("", "chain address"),
    "treasury.record": ("recorded", MOVEMENT),
    "treasury.correct": ("recorded", f"{MOVEMENT} corrects"),
    "cold.address": ("coldWallet", "coldWallet"),
    "cold.limits": (LIMITS, LIMITS),
    "cold.transfer": ("coldWallet hotWallet underWay", TRANSFER),
    "cold.drop": ("", "transferId"),
    "month.close": ("state digest", "state digest"),
    "month.restate": ("state digest months", "state digest months"),
}
"""Each act that has more than one door: its facts before and after."""
DAY: Final = (
    Step(
        "rate.set",
        "rates set USDT:KFB 5 --merchant {shop}",
        f"{MERCHANT}/rates",
        {"direction": "USDT:KFB", "do": "set", "rate-usdt-kfb": "5"},
    ),
    Step(
        "rate.pause",
        "rates pause USDT:KFB --merchant {shop}",
        f"{MERCHANT}/rates",
        {"direction": "USDT:KFB", "do": "pause"},
    ),
    Step(
        "rate.resume",
        "rates resume USDT:KFB --merchant {shop}",
        f"{MERCHANT}/rates",
        {"direction": "USDT:KFB", "do": "resume"},
    ),
    Step(
        "rate.remove",
        "rates remove USDT:KFB --merchant {shop}",
        f"{MERCHANT}/rates",
        {"direction": "USDT:KFB", "do": "remove"},
    ),
    Step(
        "merchant.create",
        "merchant create Corner-{n} --currency-mode USDT",
        "/console/merchants/new",
        {"name": "Corner-{n}", "currency-mode": "USDT"},
    ),
    Step(
        "merchant.set",
        "merchant set {shop} --second-approval-limit 300{n}",
        f"{MERCHANT}/settings",
        {"second-approval-limit": "300{n}", "reason": WHY},
        arrange=fill_settings,
    ),
    Step("merchant.suspend", "merchant suspend {shop}", f"{MERCHANT}/status", {"status": "suspended"}),
    Step("merchant.resume", "merchant resume {shop}", f"{MERCHANT}/status", {"status": "active"}),
    Step("merchant.roll_key", "merchant rotate-secret {shop}", f"{MERCHANT}/secrets/rotate", {}, own=True),
    Step(
        "merchant.end_old_secret",
        "merchant retire-secret {shop}",
        f"{MERCHANT}/secrets/retire",
        {},
        own=True,
    ),
    Step(
        "merchant.add_key",
        "merchant add-key {shop} --name till",
        f"{MERCHANT}/keys/new",
        {"name": "till", "operations": list(OPERATIONS), "networks": ""},
        own=True,
    ),
    Step(
        "merchant.set_key",
        "merchant set-key {shop} {key} --networks 192.0.2.0/24",
        f"{MERCHANT}/keys/{{key}}",
        {"name": "till", "operations": list(OPERATIONS), "networks": "192.0.2.0/24"},
        own=True,
        arrange=name_key,
    ),
    Step(
        "merchant.set_key",
        "merchant set-key {shop} {key} --networks any",
        f"{MERCHANT}/keys/{{key}}",
        {"name": "till", "operations": list(OPERATIONS), "networks": "", "reason": WHY},
    ),
    Step(
        "merchant.roll_key",
        "merchant roll-key {shop} {key} --overlap 24h",
        f"{MERCHANT}/keys/{{key}}/roll",
        {"overlap": "86400000"},
        own=True,
    ),
    Step(
        "merchant.revoke_key",
        "merchant revoke-key {shop} {key}",
        f"{MERCHANT}/keys/{{key}}/revoke",
        {},
        own=True,
    ),
    Step(
        "operator.create",
        "operator create {op} --role merchant --merchant {shop}",
        "/console/operators/new",
        {"name": "{op}", "role": "merchant", "merchant": "{shop}"},
    ),
    Step(
        "operator.end_sessions",
        "operator end-sessions {op}",
        f"{OPERATOR}/end-sessions",
        {},
        arrange=name_operator,
    ),
    Step("operator.reset", "operator reset {op}", f"{OPERATOR}/reset", {"reason": WHY}),
    Step("operator.disable", "operator disable {op}", f"{OPERATOR}/status", {"status": "disabled"}),
    Step(
        "operator.enable", "operator enable {op}", f"{OPERATOR}/status", {"status": "active", "reason": WHY}
    ),
    Step(
        "operator.set_role",
        "operator set-role {op} --role auditor",
        f"{OPERATOR}/role",
        {"role": "auditor", "merchant": "", "reason": WHY},
    ),
    Step(
        "operator.see_failures",
        "operator seen-failures '0-operator {op}-{day}'",
        "/console/inbox/sign-ins/seen",
        {"merchant": "0", "subject": "operator {op}", "day": "{day}", "failures": "12"},
        arrange=fail_sign_ins,
    ),
    Step("sub_user.set", "sub-users set {shop} alice --pause", f"{MERCHANT}/users/{{user}}", {"do": "pause"}),
    Step(
        "sub_user.set", "sub-users set {shop} alice --resume", f"{MERCHANT}/users/{{user}}", {"do": "resume"}
    ),
    Step(
        "sub_user.reset_pin",
        "sub-users reset-pin {shop} alice",
        f"{MERCHANT}/users/{{user}}/pin",
        {},
        own=True,
    ),
    Step("callback.pause", "callbacks pause {shop}", "/console/callbacks/merchants/{shop}/pause", {}),
    Step("callback.resume", "callbacks resume {shop}", "/console/callbacks/merchants/{shop}/resume", {}),
    Step(
        "callback.resend",
        "callbacks resend --parked-of {shop}",
        "/console/callbacks/merchants/{shop}/resend-parked",
        {},
        own=True,
    ),
    Step(
        "withdrawal.approve",
        "withdrawals approve {order}",
        "/console/withdrawals/approve",
        {"order": "{order}", "confirmed": "1", "back": "order"},
        arrange=take_order,
    ),
    Step(
        "withdrawal.thaw",
        "withdrawals resume {order}",
        "/console/withdrawals/{order}/thaw",
        {},
        arrange=freeze_payout,
    ),
    Step(
        "withdrawal.cancel",
        "withdrawals cancel {order}",
        "/console/withdrawals/cancel",
        {"order": "{order}", "confirmed": "1", "back": "order"},
        own=True,
        arrange=take_order,
    ),
    Step(
        "withdrawal.refund",
        "withdrawals refund {order}",
        "/console/withdrawals/{order}/refund",
        {},
        arrange=fail_order,
    ),
    Step("wallet.freeze", "wallets stop ERC20", "/console/payouts/ERC20/stop", {"reason": WHY}),
    Step("wallet.thaw", "wallets resume ERC20", "/console/payouts/ERC20/resume", {"reason": WHY}),
    Step(
        "screening.release",
        "screening release {screening}",
        "/console/screening/{screening}/release",
        {"reason": WHY},
        arrange=hold_order,
    ),
    Step(
        "screening.ask_again",
        "screening ask-again {screening}",
        "/console/screening/{screening}/ask",
        {},
        arrange=hold_order,
    ),
    Step(
        "screening.refuse",
        "screening refuse {screening}",
        "/console/screening/{screening}/refuse",
        {"reason": WHY},
        arrange=hold_order,
    ),
    Step(
        "deposits.release",
        "deposits release {tx}",
        "/console/deposits/ERC20/{tx}/0/release",
        {"reason": WHY},
        arrange=hold_deposit,
    ),
    Step(
        "deposits.drop",
        "deposits drop {tx}",
        "/console/deposits/ERC20/{tx}/0/drop",
        {"reason": WHY},
        arrange=hold_deposit,
    ),
    Step(
        "deposits.rescan",
        "deposits rescan TRC20 1",
        "/console/safety/TRC20/rescan",
        {"first_block": "1"},
        arrange=have_read,
    ),
    Step(
        "sweep.end",
        "sweep end {sweep}",
        "/console/safety/sweeps/{sweep}/end",
        {"reason": WHY},
        arrange=begin_sweep,
    ),
    Step(
        "treasury.record",
        "reconcile record IN ERC20 5 --tx {hash}",
        "/console/safety/record",
        {"chain": "ERC20", "direction": "IN", "amount": "5", "tx_hash": "{hash}", "reason": WHY},
    ),
    Step(
        "treasury.correct",
        "reconcile record OUT ERC20 5 --tx {hash} --corrects {record}",
        "/console/safety/record",
        {
            **{"chain": "ERC20", "direction": "OUT", "amount": "5", "tx_hash": "{hash}"},
            **{"corrects": "{record}", "reason": WHY},
        },
        arrange=name_record,
    ),
    Step(
        "cold.address",
        "cold wallet ERC20 {cold}",
        "/console/cold/ERC20/wallet",
        {"address": "{cold}", "reason": WHY},
        arrange=forget_cold_transfers,
    ),
    Step(
        "cold.limits",
        "cold limits ERC20 --most 50{n} --target 30 --refill-below 10",
        "/console/cold/ERC20/limits",
        {"most": "50{n}", "target": "30", "least": "10", "reason": WHY},
    ),
    Step(
        "cold.transfer",
        "cold move to-cold ERC20 7",
        "/console/cold/ERC20/move",
        {"direction": "to_cold", "amount": "7", "reason": WHY},
    ),
    Step(
        "cold.drop",
        "cold drop {transfer}",
        "/console/cold/transfers/{transfer}/drop",
        {},
        arrange=name_transfer,
    ),
    Step(
        "month.close", "finance close 2024-1{n}", "/console/finance/months/2024-1{n}/close", {"reason": WHY}
    ),
    Step(
        "month.restate",
        "finance restate 2024-1{n}",
        "/console/finance/months/2024-1{n}/restate",
        {"reason": WHY},
        arrange=sign_months,
    ),
)
"""A day of work, with each of these acts."""
PROPOSED: Final = RIGHTS.keys() | {"rate.remove"}
"""The acts that need two people here."""
PREPARING: Final = frozenset(
    ("merchant.suspend", "merchant.end_old_secret", "operator.disable", "wallet.freeze")
)
"""The acts that those need before them."""
WITH_REASON: Final = (
    *(
        "rates set",
        "rates remove",
        "merchant set ",
        "merchant set-key",
        "merchant resume",
        "operator create",
        "operator reset",
    ),
    *("merchant roll-key", "merchant rotate-secret"),
    *("operator enable", "operator set-role", "wallets", "screening re", "deposits release", "deposits drop"),
    *("reconcile", "sweep end"),
    *("cold wallet", "cold limits", "cold move", "finance", "merchant add-key", "sub-users set"),
)
"""The commands that take a reason."""
