"""Checks at a quiet point: no faults, no requests under way. Then everything must agree to the millionth.

Rules:
- Each merchant's statement has every accepted order once, with the model's amounts, and no order that was
  refused.
- Each withdrawal reaches an end, and each of its statuses that is told has been told.
- Each callback that was not accepted came again.
- The product's own checks find nothing: `book verify`, `audit verify`, `finance verify`, `reconcile`,
  `doctor`.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from simulator.book import Key
from simulator.deployment import Deployment, Ran
from simulator.failure import Contradiction
from simulator.merchants import Merchant
from simulator.operators import ACTIONS, Operators
from simulator.orders import CREDIT, DEBIT, EXCHANGE, WITHDRAW, parse
from simulator.receiver import Receiver

SETTLE_TIMEOUT_S: Final = 180.0
CHECK_TIMEOUT_S: Final = 60.0
LOOK_S: Final = 0.5
PAGE: Final = 499
COMMANDS: Final = (
    ("book", "verify"),
    ("audit", "verify"),
    ("finance", "verify"),
    ("reconcile",),
    ("doctor",),
)


_OPERATION_OF: Final = {
    "user_to_merchant": DEBIT,
    "merchant_to_user": CREDIT,
    "withdraw": WITHDRAW,
    "exchange": EXCHANGE,
}
"""The kinds of entries that are an order's."""


async def settle(merchants: Sequence[Merchant], receiver: Receiver) -> None:
    """Wait until nothing is in doubt and every callback was accepted. Raises Contradiction."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + SETTLE_TIMEOUT_S
    for merchant in merchants:
        # An approval is an operator's. What nobody has decided stays in 0 for a day.
        while left := await _look(merchant):
            if loop.time() > ends_s:
                raise Contradiction(f"{merchant.account.name} waited {SETTLE_TIMEOUT_S:g} s for {left[:5]}")
            await asyncio.sleep(LOOK_S)
    while receiver.owed:
        if loop.time() > ends_s:
            raise Contradiction(f"these callbacks were not accepted, and not sent again: {receiver.owed}")
        await asyncio.sleep(LOOK_S)


async def _look(merchant: Merchant) -> list[str]:
    """What a merchant still waits for."""
    await merchant.settle_doubts()
    await merchant.release_deposits()
    waiting = {payout.mc_order_id for payout in merchant.list_waiting()}
    left = []
    for payout in merchant.payouts.values():
        if payout.mc_order_id not in waiting and not payout.is_final:
            left.append(f"the end of {payout.mc_order_id}, which is in {payout.status}")
        if payout.owed:
            left.append(f"the callback of {payout.mc_order_id} with status {sorted(payout.owed)}")
    left += [f"the release of the deposit {held.tx_hash}" for held in merchant.held]
    return left + [f"the callback of the deposit {name}" for name in merchant.deposits.untold]


async def check_statement(deployment: Deployment, merchant: Merchant) -> int:
    """Compare a merchant's whole statement with the model. Returns how many orders it has.

    Raises Contradiction.
    """
    entries = await _read_entries(deployment, merchant)
    await _wait_for_deposits(merchant, sum(rows[0]["kind"] == "deposit" for rows in entries))
    book = merchant.book
    found = Counter(key for rows in entries if (key := _find_key(rows)) is not None)
    for doubt in book.doubts:
        # Its request is gone with its connection, and the book has no entry of it: it never happened.
        if doubt.is_request and doubt.key not in found:
            book.end_doubt(doubt.key)
    twice = {key: count for key, count in found.items() if count > 1}
    missing, strange = book.known.keys() - found.keys(), found.keys() - book.known.keys()
    if twice or missing or strange:
        # An order in doubt is strange too: it is in the book, and its last repeat was refused.
        raise Contradiction(
            f"the statement of {merchant.account.name}: twice {twice}, missing {sorted(missing)}, "
            f"not known {sorted(strange)}"
        )
    for rows in entries:
        _check_entry(merchant, rows)
    return found.total()


async def _read_entries(deployment: Deployment, merchant: Merchant) -> list[list[dict[str, Any]]]:
    """All entries of a book, each with its rows."""
    statement = ("book", "statement", merchant.account.merchant_id, "--format", "jsonl")
    entries: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in (await _insist(deployment, *statement)).output.splitlines():
        row = json.loads(line)
        entries[row["entryId"]].append(row)
    return list(entries.values())


def _find_key(rows: Sequence[dict[str, Any]]) -> Key | None:
    """The order that an entry is of."""
    operation = _OPERATION_OF.get(rows[0]["kind"])
    return None if operation is None else (operation, rows[0]["mcOrderId"])


async def _wait_for_deposits(merchant: Merchant, count: int) -> None:
    """Wait for the callbacks of deposits whose answer was lost. Raises Contradiction."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + SETTLE_TIMEOUT_S
    while (told := len(merchant.deposits.credited)) < count:
        if loop.time() > ends_s:
            raise Contradiction(f"{merchant.account.name} has {count} deposits, and {told} were told")
        await asyncio.sleep(LOOK_S)
        await merchant.settle_doubts()
    merchant.deposits.end_unanswered()
    merchant.require_no_strangers()


def _check_entry(merchant: Merchant, rows: Sequence[dict[str, Any]]) -> None:
    key = _find_key(rows)
    if key is None:
        return
    known = merchant.book.known[key]
    moved: Counter[str] = Counter()
    for row in rows:
        account = str(row["account"])
        if account.startswith("merchant:"):
            moved[account.removeprefix("merchant:")] += parse(row["amount"])
        elif account.startswith("subuser:"):
            moved["user"] += parse(row["amount"])
    expected: Counter[str] = Counter()
    for account, units in known.effect.moves:
        expected["user" if account.startswith("user:") else account] += units
    if {name: units for name, units in moved.items() if units} != {n: u for n, u in expected.items() if u}:
        raise Contradiction(
            f"the entry of {known.order} moved {dict(moved)} and not {dict(expected)}: {rows}"
        )


async def check_audit_log(deployment: Deployment, operators: Operators) -> None:
    """Each acknowledged act of an operator is in the audit log once. Raises Contradiction."""
    counts: Counter[str] = Counter()
    page = ("audit", "list", "--json", "--limit", str(PAGE))
    before: tuple[str, ...] = ()
    while True:
        listed = (await _insist(deployment, *page, *before)).read()
        counts.update(entry["action"] for entry in listed["entries"])
        if listed["nextBefore"] is None:
            break
        before = ("--before", str(listed["nextBefore"]))
    for act, action in ACTIONS.items():
        least, most = operators.acknowledged[act], operators.tried[act]
        if not least <= counts[action] <= most:
            raise Contradiction(
                f"the audit log has {counts[action]} entries {action}; possible is {least} to {most}"
            )


async def check_product(deployment: Deployment) -> None:
    """The product's own checks. Raises Contradiction."""
    loop = asyncio.get_running_loop()
    for command in COMMANDS:
        ends_s = loop.time() + CHECK_TIMEOUT_S
        while not (ran := await deployment.command(*command, "--json")).ok:
            # Workers may still be finishing what the last fault has left.
            if loop.time() > ends_s:
                raise Contradiction(f"'{ran.line}' finds a fault: {_find_faults(ran)}")
            await asyncio.sleep(LOOK_S)


def _find_faults(ran: Ran) -> str:
    if "checks" not in ran.output:
        return (ran.output + ran.errors)[-2000:]
    return str([check for check in ran.read()["checks"] if not check["ok"]])


async def _insist(deployment: Deployment, *arguments: str) -> Ran:
    ran = await deployment.command(*arguments)
    if not ran.ok:
        raise Contradiction(f"'{ran.line}' failed at a quiet point: {ran.output[-500:]}{ran.errors[-500:]}")
    return ran
