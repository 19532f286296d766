"""What people do about a screening: release it, refuse it, or have it asked again.

Rules:
- To release takes two people, as an approval above the second limit does: it lets money go. In the sandbox
  one is enough.
- To refuse takes one person: the merchant gets an order's amount back, and a deposit stays uncredited.
- Each change and its entry in the audit log are one transaction, whichever door it comes from.
- A worker carries a decision on: it wakes the order's payout, or makes the deposit pending again.
"""

from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.state_table import IllegalStep
from merchant_wallet.screening import store
from merchant_wallet.screening.screening_states import Event
from merchant_wallet.screening.store import Connection, Overtaken, Screening

RELEASE: Final = "screening.release"
REFUSE: Final = "screening.refuse"
ASK_AGAIN: Final = "screening.ask_again"
_SUBJECT: Final = "screening "
GONE: Final = "There is no such screening any more."
DECIDED: Final = "It was decided or asked again meanwhile. Look at it again."


def format_subject(screening_no: int) -> str:
    """The name of a screening in proposals and in the audit log."""
    return f"{_SUBJECT}{screening_no}"


def describe_release(found: Screening) -> tuple[Facts, Facts]:
    """The facts of a release before and after. Pure. Raises ChangeRefused if it can't be released."""
    if not found.allows(Event.RELEASED):
        raise ChangeRefused(DECIDED)
    before = describe_state(found)
    return before, {**before, "state": "released"}


def describe_state(found: Screening) -> Facts:
    """A screening and what it is about. Pure."""
    return {"state": found.state.value, "round": found.round_no, **describe(found)}


def describe(found: Screening) -> Facts:
    """What a screening is about, for people and for the audit log. Pure."""
    if found.is_order:
        return {"orderId": found.order_id, "amountUnits": found.amount_units}
    place = {"chain": found.chain, "txHash": found.tx_hash, "logIndex": found.log_index}
    return {**place, "amountUnits": found.amount_units}


async def release(
    home: Connection, author: Author, found: Screening, proposal_no: int | None = None
) -> Screening:
    """Release a screening. Raises ChangeRefused."""
    return await _decide(home, author, found, Event.RELEASED, proposal_no)


async def refuse(home: Connection, author: Author, found: Screening) -> Screening:
    """Refuse a screening. Raises ChangeRefused."""
    return await _decide(home, author, found, Event.REJECTED)


async def ask_again(home: Connection, author: Author, found: Screening) -> Screening:
    """Have the sources asked again. Raises ChangeRefused."""
    try:
        async with home.transaction():
            again = await store.ask_again(home, found, author.at_ms)
            await _record(home, author, ASK_AGAIN, found, again)
    except (Overtaken, IllegalStep):
        raise ChangeRefused(DECIDED) from None
    return again


async def decide(
    home: Connection, found: Screening, event: Event, actor: str, at_ms: int, proposal_no: int | None = None
) -> Screening:
    """Release or refuse a screening, without a record. Raises ChangeRefused."""
    try:
        return await store.move(
            home, found, event, found.reasons, at_ms, decided_by=actor, proposal_no=proposal_no
        )
    except (Overtaken, IllegalStep):
        raise ChangeRefused(DECIDED) from None


async def _decide(
    home: Connection, author: Author, found: Screening, event: Event, proposal_no: int | None = None
) -> Screening:
    async with home.transaction():
        decided = await decide(home, found, event, author.actor, author.at_ms, proposal_no)
        action = RELEASE if event is Event.RELEASED else REFUSE
        await _record(home, author, action, found, decided)
    return decided


async def _record(home: Connection, author: Author, action: str, before: Screening, after: Screening) -> None:
    await author.record(
        home,
        action,
        format_subject(before.screening_no),
        before.merchant_id,
        before=describe_state(before),
        after=describe_state(after),
    )


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to release."""
    return {RELEASE: Kind(RELEASE, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return describe_state(await _lock(conn, change))


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    await release(conn, author, await _lock(conn, change), change.proposal_no)
    return Applied()


async def _lock(conn: Connection, change: ProposedChange) -> Screening:
    found = await store.find_one(conn, int(change.subject.removeprefix(_SUBJECT)), locked=True)
    if found is None:
        raise ChangeRefused(GONE)
    return found
