"""What waits in the platform's own tables, as items of the inbox.

Rules:
- Each function reads at most as many rows as are asked for and one more, from one index in each cell.
- The texts and links are in `web/inbox_sources`. An item has only the values.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from merchant_wallet.approvals import changes, proposals
from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.base.lookalikes import show_ends
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.custody.sweeps.store import SweepShown, list_failed
from merchant_wallet.merchants import staff_secrets
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.inbox import Asked, Item
from merchant_wallet.reporting.lookalikes import NewAddress, find_lookalikes, list_new_addresses
from merchant_wallet.reporting.paging import Row, fetch
from merchant_wallet.reporting.payout_blockers import FROZEN, ROLLBACK, STOP, WALLET, list_blockers

QUERIES: Final = Queries(Path(__file__).with_name("inbox.sql"))
MAX_COUNTED: Final = 1_000
"""Things that are counted together, such as a merchant's dead letters, are counted up to this."""
MAX_COMPARISONS: Final = 1_000
"""The last sound comparison is searched among so many."""
FAILED: Final = "failed"
EXPLAINED: Final = "explained"
"""No unit is unexplained, but a line of the explanation needs a person."""
ALIKE: Final = "alike"
"""An order or a proposal whose address looks like a known one and is another."""
AGAIN: Final = "again"
NAMED: Final = ("funds", "fuel", "deprecated")
"""Obstacles that have a text of their own: somebody must fill the hot wallet, or name the new token."""
PASSING: Final = ("alert", "node", "stale")
"""Obstacles that nodes make: one is away for a second, or a few blocks behind another."""
PASSING_MS: Final = 300_000
"""Such obstacles pass within this time, or a person must look at the nodes."""
COMPARED_AGAIN_MS: Final = 900_000
"""By default a comparison that failed is made again within this time."""
OF_SCREENING: Final = ("screening", "payout_rule", "payout_hours")
"""Obstacles that a person releases, which have a kind of their own, or that pass by themselves."""
ACCOUNT: Final = "account"
STAFF_SECRETS_MS: Final = 7 * DAY_MS
"""A merchant's people are told so long that the platform's people made a secret."""
LEAST_FAILURES: Final = 10
"""Fewer failed sign-ins in a day are people who mistype."""
FAILURES_MS: Final = DAY_MS
"""Failed sign-ins of this day and the one before are shown."""


async def list_approvals(asked: Asked) -> list[Item]:
    """Orders that wait for approval. Who gave the first of two approvals can't give the second."""
    name = "list_unapproved" if asked.merchant_id is None else "list_unapproved_of_merchant"
    rows = await _ask_cells(asked, name)
    new = {row["order_id"]: NewAddress(row["merchant_id"], row["address"]) for row in rows}
    lookalikes = await find_lookalikes(asked.home, asked.cells, new.values(), asked.merchant_id)
    waits = await _list_secret_waits(asked, {row["merchant_id"] for row in rows})
    return [
        _item(
            row,
            str(row["order_id"]),
            row["created_ms"],
            waits=waits.get(row["merchant_id"], {}),
            order=row["mc_order_id"],
            order_id=row["order_id"],
            chain=row["chain"],
            form=_name_approval(row, is_alike=new[row["order_id"]] in lookalikes),
            ends=show_ends(row["address"]),
            done_by=(row["first_approved_by"],) if row["first_approved_by"] else (),
            until_ms=row["deadline_ms"],
        )
        for row in rows
    ]


async def _list_secret_waits(asked: Asked, merchant_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """By merchant, whose approvals of its orders do not count yet, as who made a secret of it, until when."""
    values = {"merchant_ids": list(merchant_ids), "at_ms": asked.at_ms}
    found: dict[int, dict[str, int]] = {}
    for row in await fetch(asked.home, QUERIES["list_secret_waits"].text, values):
        found.setdefault(row["merchant_id"], {})[row["person"]] = row["eligible_ms"]
    return found


def _name_approval(row: Row, *, is_alike: bool) -> str:
    """The form of an order that waits for approval."""
    if is_alike:
        return ALIKE
    return "second" if row["first_approved_by"] else ""


async def list_frozen(asked: Asked) -> list[Item]:
    """Orders whose payout is frozen until an operator has looked."""
    return [
        _item(
            row,
            str(row["order_id"]),
            row["frozen_ms"],
            order_id=row["order_id"],
            chain=row["chain"],
        )
        for row in await _ask_home(asked, "list_frozen")
    ]


async def list_dead_letters(asked: Asked) -> list[Item]:
    """Merchants with callbacks that were given up: one item for each merchant."""
    name = "list_dead_letters" if asked.merchant_id is None else "count_dead_letters_of_merchant"
    return [
        _item(
            row,
            str(row["merchant_id"]),
            row["oldest_ms"],
            count=_bounded(row["callbacks"]),
            merchant=row["merchant_id"],
        )
        for row in await _ask_cells(asked, name)
    ]


async def list_held_deposits(asked: Asked) -> list[Item]:
    """Deposits that a person must decide about."""
    return [
        _item(
            row,
            f"{row['chain']}-{row['tx_hash']}-{row['log_index']}",
            row["seen_ms"],
            chain=row["chain"],
            tx_hash=row["tx_hash"],
            log_index=row["log_index"],
        )
        for row in await _ask_cells(asked, "list_held_deposits")
    ]


async def list_held_screenings(asked: Asked) -> list[Item]:
    """Orders and deposits that screening holds."""
    return [
        _item(
            row,
            str(row["screening_no"]),
            row["begun_ms"],
            screening_no=row["screening_no"],
            chain=row["chain"],
            form="" if row["order_id"] is None else "order",
        )
        for row in await _ask_home(asked, "list_held_screenings")
    ]


async def list_dust(asked: Asked) -> list[Item]:
    """Deposits that are too small to be credited: one item for each chain."""
    name = "count_dust" if asked.merchant_id is None else "count_dust_of_merchant"
    found: dict[str, list[Row]] = {}
    for row in await _ask_cells(asked, name):
        found.setdefault(row["chain"], []).append(row)
    return [
        Item(
            chain,
            min(row["oldest_ms"] for row in rows),
            {"chain": chain, "count": _bounded(sum(row["deposits"] for row in rows))},
            merchant_id=asked.merchant_id,
            amount_units=sum(int(row["amount_units"]) for row in rows),
            currency=USDT,
        )
        for chain, rows in found.items()
    ]


async def list_failed_sweeps(asked: Asked) -> list[Item]:
    """Addresses at which a sweep failed and nobody has tried again with success: one item for each chain."""
    failed: dict[str, list[SweepShown]] = {}
    for one in await list_failed(asked.home, asked.chains, limit=MAX_COUNTED):
        failed.setdefault(one.chain, []).append(one)
    return [
        Item(
            chain,
            found[0].ended_ms or found[0].opened_ms,
            {"chain": chain, "count": _bounded(len({one.address for one in found}))},
        )
        for chain, found in failed.items()
    ]


async def list_adjustments(asked: Asked) -> list[Item]:
    """Adjustments that wait for a second person, and accepted ones that nobody carried out."""
    home, now_ms = asked.home, asked.at_ms
    waiting = await proposals.list_open(home, now_ms=now_ms, limit=asked.limit + 1)
    unfinished = await proposals.list_unfinished(home, now_ms=now_ms, limit=asked.limit + 1)
    return [
        Item(
            f"{one.proposal_no}{'-unfinished' if one.is_unfinished else ''}",
            one.proposed_ms,
            {"number": str(one.proposal_no), "who": one.proposed_by},
            form="unfinished" if one.is_unfinished else "",
            merchant_id=one.merchant_id,
            amount_units=one.signed_units,
            currency=one.currency,
            done_by=() if one.is_unfinished else (one.proposed_by,),
            until_ms=None if one.is_unfinished else one.expires_ms,
        )
        for one in (*waiting, *unfinished)
    ]


def name_subject(change: ProposedChange) -> str:
    """What a proposal is about, without the first word, which the text of its kind says. Pure."""
    return change.subject.partition(" ")[2] or change.subject


def make_proposals(right_of: Callable[[str], Right | None]) -> Callable[[Asked], Awaitable[list[Item]]]:
    """A source of proposed changes. A kind that this version does not know can only be refused."""

    async def list_proposals(asked: Asked) -> list[Item]:
        found = await changes.list_open(asked.home, at_ms=asked.at_ms, limit=asked.limit + 1)
        ends = await _find_alike(asked, found)
        return [
            Item(
                str(one.proposal_no),
                one.proposed_ms,
                {
                    "number": str(one.proposal_no),
                    "subject": name_subject(one),
                    "who": one.proposed_by,
                    "ends": ends.get(one.proposal_no, ""),
                },
                form=ALIKE if one.proposal_no in ends else one.kind if right_of(one.kind) else "",
                merchant_id=one.merchant_id,
                done_by=(one.proposed_by,),
                right=right_of(one.kind),
                until_ms=one.expires_ms,
            )
            for one in found
        ]

    return list_proposals


async def _find_alike(asked: Asked, found: Sequence[ProposedChange]) -> dict[int, str]:
    """The proposals that add an address which looks like a known one, with the ends of that address."""
    new = [(one.proposal_no, each) for one in found for each in list_new_addresses(one)]
    lookalikes = await find_lookalikes(asked.home, asked.cells, [each for _, each in new], asked.merchant_id)
    return {number: show_ends(each.address) for number, each in new if each in lookalikes}


async def list_stops(asked: Asked) -> list[Item]:
    """Stops of payouts that are in force, frozen hot wallets, and evidence of a rollback."""
    blockers = await list_blockers(asked.home, asked.cells, chains=asked.chains)
    return [
        Item(
            f"{one.kind}-{one.chain}-{one.since_ms}",
            one.since_ms,
            {"chain": one.chain, "who": one.actor, "why": one.cause},
            form={STOP: "", WALLET: WALLET, ROLLBACK: ROLLBACK}[one.kind],
        )
        for one in blockers
        if one.stops_chain
    ]


async def list_obstacles(asked: Asked) -> list[Item]:
    """What keeps payouts of a chain waiting: one item for each chain and obstacle.

    What may pass by itself is listed only after `PASSING_MS`.
    """
    blockers = await list_blockers(asked.home, asked.cells, chains=asked.chains)
    return [
        Item(
            f"{one.kind}-{one.chain}",
            one.since_ms,
            {"chain": one.chain, "why": one.cause, "count": _bounded(one.orders)},
            form=one.kind if one.kind in NAMED else "",
        )
        for one in blockers
        if not one.stops_chain
        and one.kind not in (FROZEN, *OF_SCREENING)
        and (one.kind not in PASSING or asked.at_ms - one.since_ms >= PASSING_MS)
    ]


async def list_unread_chains(asked: Asked) -> list[Item]:
    """Chains in use whose watchers can't read on, since the last block that they read."""
    return [
        Item(row["chain"], row["moved_ms"], {"chain": row["chain"], "why": row["alert"]})
        for row in await fetch(asked.home, QUERIES["list_unread_chains"].text, {"chains": list(asked.chains)})
    ]


async def list_differences(asked: Asked) -> list[Item]:
    """Chains whose last comparison with the books was not sound, or failed for `COMPARED_AGAIN_MS`."""
    values = {"chains": list(asked.chains), "most": MAX_COMPARISONS}
    return [
        Item(
            row["chain"],
            row["since_ms"],
            {"chain": row["chain"]},
            form=_name_difference(row),
            # A difference may be explained to the last unit and still need a person: a stranger's transfer.
            amount_units=row["unexplained_units"] or None,
            currency=USDT if row["unexplained_units"] else "",
        )
        for row in await fetch(asked.home, QUERIES["list_last_comparisons"].text, values)
        if not row["is_sound"]
        and not (
            row["is_failed"] and row["began_failed"] and asked.at_ms - row["since_ms"] < COMPARED_AGAIN_MS
        )
    ]


def _name_difference(row: Row) -> str:
    if row["is_failed"]:
        return FAILED
    return "" if row["unexplained_units"] else EXPLAINED


async def list_failed_sign_ins(asked: Asked) -> list[Item]:
    """People for whom many sign-ins failed within a day, beyond those that somebody has seen."""
    values = {
        "merchant_id": asked.merchant_id,
        "since_ms": asked.at_ms - asked.at_ms % DAY_MS - FAILURES_MS,
        "least": LEAST_FAILURES,
        "limit": asked.limit + 1,
    }
    return [
        Item(
            # With other numbers it is another item: people are told again.
            f"{row['merchant_id']}-{row['subject']}-{row['day']}"
            + (f"-{row['seen']}" if row["seen"] else ""),
            row["since_ms"],
            {
                "subject": row["subject"],
                "count": str(row["failures"] - row["seen"]),
                "who": row["seen_by"] or "",
                "merchant": str(row["merchant_id"]),
                "day": str(row["day"]),
                "failures": str(row["failures"]),
            },
            form=AGAIN if row["seen"] else "",
            merchant_id=row["merchant_id"] or None,
        )
        for row in await fetch(asked.home, QUERIES["list_failed_sign_ins"].text, values)
    ]


async def list_staff_secrets(asked: Asked) -> list[Item]:
    """Secrets of a merchant, and access to it, that staff made within a week, for its own people."""
    values = {
        "merchant_id": asked.merchant_id,
        "since_ms": asked.at_ms - STAFF_SECRETS_MS,
        "limit": asked.limit + 1,
    }
    return [
        Item(
            f"{row['key_no']}-{row['made_ms']}",
            row["made_ms"],
            {"number": str(row["key_no"]), "merchant": str(asked.merchant_id)},
            form=ACCOUNT if row["key_no"] == staff_secrets.ACCOUNT else "",
            merchant_id=asked.merchant_id,
        )
        for row in await fetch(asked.home, QUERIES["list_staff_secrets"].text, values)
    ]


async def list_unreached(asked: Asked) -> list[Item]:
    """People whom no notification could reach within a day."""
    values = {
        "merchant_id": asked.merchant_id,
        "since_ms": asked.at_ms - DAY_MS,
        "limit": asked.limit + 1,
    }
    return [
        Item(
            f"{row['operator_id']}-{row['channel']}",
            row["since_ms"],
            {"name": row["name"], "operator_id": str(row["operator_id"])},
            form=row["channel"],
            merchant_id=row["merchant_id"],
        )
        for row in await fetch(asked.home, QUERIES["list_unreached"].text, values)
    ]


async def _ask_cells(asked: Asked, name: str) -> list[Row]:
    values = {"merchant_id": asked.merchant_id, "limit": asked.limit + 1, "most": MAX_COUNTED}
    found = await asked.cells.ask(lambda cell: fetch(cell, QUERIES[name].text, values), asked.merchant_id)
    return [row for rows in found for row in rows]


async def _ask_home(asked: Asked, name: str) -> Sequence[Row]:
    values = {"merchant_id": asked.merchant_id, "limit": asked.limit + 1}
    return await fetch(asked.home, QUERIES[name].text, values)


def _item(
    row: Row,
    key: str,
    since_ms: int,
    *,
    form: str = "",
    done_by: tuple[str, ...] = (),
    waits: Mapping[str, int] | None = None,
    until_ms: int | None = None,
    **values: Any,
) -> Item:
    """An item of one merchant, from a row with the merchant's columns and perhaps an amount."""
    amount_units = row.get("amount_units")
    return Item(
        key,
        since_ms,
        {name: str(value) for name, value in values.items()},
        form,
        row["merchant_id"],
        row["merchant_name"],
        amount_units,
        "" if amount_units is None else USDT,
        done_by,
        waits or {},
        None,
        until_ms,
    )


def _bounded(count: int) -> str:
    """A count that stops at a bound, as text."""
    return f"{count:,}" if count < MAX_COUNTED else f"{MAX_COUNTED:,}+"
