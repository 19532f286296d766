"""`merchant suspend` and others: whether a merchant may call, and with which secrets.

Rules: a secret is printed once, by the command that creates it.
"""

from typing import TYPE_CHECKING, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument, ProposalReasonOption
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.app_keys import NewSecret
    from merchant_wallet.merchants.keys import Keyring

app = typer.Typer()

KEPT_ONCE = "Keep the secrets now: they are shown this once."


@app.command()
def suspend(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Refuse a merchant's requests from the next one on. Orders that are being paid go on.

    \b
    Example:
      merchant-wallet merchant suspend Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import acts, records

        merchant_id = (await session.find(merchant)).merchant_id
        changed = await acts.suspend(session.conn, session.author(), merchant_id)
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, "status": records.SUSPENDED, "changed": changed}

    terminal.print_answer(run(data, act), as_json)


@app.command()
def resume(
    merchant: MerchantArgument,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept a suspended merchant's requests again. Outside the sandbox another person must agree.

    \b
    Examples:
      merchant-wallet merchant resume Shop
      merchant-wallet merchant resume Shop --reason "the leak is closed"
    """

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.merchants import acts, records, two_person_changes

        merchant_id = (await session.find(merchant)).merchant_id
        keyring = (await session.open_base()).keyring
        author = session.author(describe_reason(reason))
        async with session.conn.transaction():
            was = await two_person_changes.read_status(session.conn, keyring, merchant_id)
            if was != records.ACTIVE:
                facts, subject = two_person_changes.describe_resumption(), acts.format_subject(merchant_id)
                proposed = await propose(
                    session, acts.RESUME, subject, facts, reason, merchant_id=merchant_id
                )
                if proposed is not None:
                    return proposed
                author = session.author(describe_lone_change(session, reason))
            changed = await acts.resume(session.conn, author, merchant_id)
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, "status": records.ACTIVE, "changed": changed}

    print_changed(run(data, act), as_json)


@app.command("rotate-secret")
def rotate_secret(
    merchant: MerchantArgument,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a second secret and print it once. The first one works until you retire it.

    Outside the sandbox it is only proposed: give a --reason. Who accepts it sees the secret.

    \b
    Examples:
      merchant-wallet merchant rotate-secret Shop
      merchant-wallet merchant rotate-secret Shop --reason "their laptop was stolen"
      merchant-wallet merchant retire-secret Shop     (once the merchant signs with the new one)
    """

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.merchants.app_keys import FIRST_KEY, NewSecret

        merchant_id = (await session.find(merchant)).merchant_id
        made = await roll_secret(session, merchant_id, FIRST_KEY, None, reason)
        if not isinstance(made, NewSecret):
            return made
        return {"merchantId": merchant_id, "appKey": made.key.app_key, "appSecret": made.secret}

    done = run(data, act)
    print_changed(done, as_json)
    if isinstance(done, dict):
        terminal.note(KEPT_ONCE)


async def open_keyring(session: Session, merchant_id: int) -> "Keyring":
    """The keyring to seal a merchant's new secret with.

    Raises WrongMasterKey: a secret sealed with another key could never be opened by the service.
    """
    from merchant_wallet.merchants import store

    keyring = (await session.open_base()).keyring
    await store.load(session.conn, keyring, merchant_id)
    return keyring


async def roll_secret(
    session: Session, merchant_id: int, key_no: int, overlap_ms: int | None, reason: str | None
) -> "NewSecret | ProposedChange":
    """Add a secret to a key, or propose it if two people are needed.

    Without an overlap both work until the older one is ended. Raises KeyRefused.
    """
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.merchants import key_acts, key_changes

    keyring = await open_keyring(session, merchant_id)
    async with session.conn.transaction():
        if session.settings.needs_two_people:
            facts = await key_changes.describe_roll(session.conn, merchant_id, key_no, overlap_ms, now_ms())
            subject = key_acts.format_subject(merchant_id, key_no)
            proposed = await propose(session, key_acts.ROLL, subject, facts, reason, merchant_id=merchant_id)
            # None: nobody else could accept it, so this person makes it alone.
            if proposed is not None:
                return proposed
        made = await key_acts.roll_key(
            session.conn,
            keyring,
            session.author(describe_lone_change(session, reason)),
            merchant_id,
            key_no,
            overlap_ms=overlap_ms,
            secret_wait_ms=session.settings.secret_wait_ms,
        )
    await session.carry(merchant_id)
    return made


@app.command("retire-secret")
def retire_secret(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Retire the older of two secrets. From the next request on it signs nothing.

    \b
    Example:
      merchant-wallet merchant retire-secret Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import key_acts
        from merchant_wallet.merchants.app_keys import FIRST_KEY

        merchant_id = (await session.find(merchant)).merchant_id
        number = await key_acts.end_old_secret(session.conn, session.author(), merchant_id, FIRST_KEY)
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, "retiredSecretNo": number}

    terminal.print_answer(run(data, act), as_json)
