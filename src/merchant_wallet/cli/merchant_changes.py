"""Changes of a merchant's settings by commands: made now, or proposed to a second person, and printed.

Rules: `merchants.acts` checks values, makes the change and records it.
"""

from typing import TYPE_CHECKING, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.merchant_facts import describe
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_proposed, propose
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.records import Merchant
    from merchant_wallet.merchants.store import Change

FROM_NOW_ON = "Holds from the next request on."


async def change_settings(
    session: Session,
    merchant_id: int,
    typed: dict[str, str],
    off: set[str],
    on: set[str],
    reason: str | None,
) -> "tuple[Change, ProposedChange | None]":
    """Change settings and switch operations off and on. What needs a second person is proposed."""
    from merchant_wallet.merchants import acts, store
    from merchant_wallet.merchants.records import OPERATIONS
    from merchant_wallet.merchants.settings import SettingRefused
    from merchant_wallet.merchants.store import Change

    if unknown := sorted((off | on) - set(OPERATIONS)):
        raise SettingRefused(f"{unknown[0]!r} is no operation; there are {', '.join(OPERATIONS)}.")
    keyring = (await session.open_base()).keyring
    sandbox = session.settings.sandbox
    async with session.conn.transaction():
        # Locks the book, so that we add to and remove from the present list.
        before = (await store.change_settings(session.conn, keyring, merchant_id, {})).before
        if off or on:
            disabled = (before.disabled_operations | off) - on
            typed = {**typed, "disabled-operations": " ".join(sorted(disabled)) or "none"}
        loosened = await _list_loosened(session, before, typed)
        proposed, author = None, session.author(describe_reason(reason))
        if loosened:
            async with session.conn.transaction(force_rollback=True):
                # A change that would be refused is not proposed.
                await acts.change_settings(session.conn, keyring, author, merchant_id, typed, sandbox=sandbox)
            proposed = await _propose(session, before, typed, loosened, reason)
            if proposed is not None:
                typed = {name: text for name, text in typed.items() if name not in loosened}
            else:
                author = session.author(describe_lone_change(session, reason))
        after = (
            await acts.change_settings(session.conn, keyring, author, merchant_id, typed, sandbox=sandbox)
        ).after
    await session.carry(merchant_id)
    return Change(before, after), proposed


async def _list_loosened(session: Session, before: "Merchant", typed: dict[str, str]) -> list[str]:
    """The settings whose change needs a second person. None in the sandbox."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.merchants import two_person_changes

    if not session.settings.needs_two_people:
        return []
    anchors = await two_person_changes.read_day_old_fees(session.conn, before.merchant_id, now_ms())
    wanted = two_person_changes.with_settings(before, typed)
    return two_person_changes.list_loosened(before, wanted, anchors, session.settings.rate_band)


async def _propose(
    session: Session, before: "Merchant", typed: dict[str, str], loosened: list[str], reason: str | None
) -> "ProposedChange | None":
    from merchant_wallet.merchants import acts, two_person_changes

    facts = (
        two_person_changes.describe(before, loosened),
        two_person_changes.describe(two_person_changes.with_settings(before, typed), loosened),
    )
    number = before.merchant_id
    return await propose(session, acts.SET, acts.format_subject(number), facts, reason, merchant_id=number)


def print_outcome(change: "Change", proposed: "ProposedChange | None", as_json: bool, **more: Any) -> None:
    """Print what was changed and what was proposed, as a document with more fields."""
    if as_json:
        number = {} if proposed is None else {"proposalNo": proposed.proposal_no}
        terminal.print_document({**describe(change.after), **number, **more})
        return
    _print_change(change, told=proposed is not None)
    if proposed is not None:
        print_proposed(proposed, as_json)


def _print_change(change: "Change", *, told: bool = False) -> None:
    """Print what was changed. `told`: if nothing was changed, the caller prints something else."""
    from merchant_wallet.merchants.settings import SHARES, show_settings
    from merchant_wallet.web.typed_values import show_percent

    before, after = show_settings(change.before), show_settings(change.after)
    changed = [name for name in after if after[name] != before[name]]
    for name in changed:
        show = show_percent if name in SHARES else str
        typer.echo(f"{name}: {show(before[name])} -> {show(after[name])}")
    if changed or not told:
        terminal.note(FROM_NOW_ON if changed else "Nothing changed: that is how it was set.")
