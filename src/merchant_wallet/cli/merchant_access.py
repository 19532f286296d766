"""`merchant suspend` and others: whether a merchant may call, and with which secrets.

Rules: a secret is printed once, by the command that creates it. A change and its record in the audit log are
one transaction.
"""

from typing import Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument
from merchant_wallet.cli.session import Session, run

app = typer.Typer()

KEPT_ONCE = "Keep the secrets now: they are shown this once."


@app.command()
def suspend(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Refuse a merchant's requests from the next one on. Orders that are being paid go on.

    \b
    Example:
      merchant-wallet merchant suspend Shop
    """
    _set_status(merchant, data, as_json, suspended=True)


@app.command()
def resume(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Accept a suspended merchant's requests again.

    \b
    Example:
      merchant-wallet merchant resume Shop
    """
    _set_status(merchant, data, as_json, suspended=False)


def _set_status(merchant: str, data: DataOption, as_json: bool, *, suspended: bool) -> None:
    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import records, store

        merchant_id = (await session.find(merchant)).merchant_id
        change = store.suspend if suspended else store.resume
        status = records.SUSPENDED if suspended else records.ACTIVE
        async with session.conn.transaction():
            changed = await change(session.conn, merchant_id)
            what = "suspend" if suspended else "resume"
            await record_change(session, what, merchant_id, None, {"status": status, "changed": changed})
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, "status": status, "changed": changed}

    terminal.print_answer(run(data, act), as_json)


@app.command("rotate-secret")
def rotate_secret(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Create a second secret and print it once. The first one works until you retire it.

    \b
    Examples:
      merchant-wallet merchant rotate-secret Shop
      merchant-wallet merchant retire-secret Shop     (once the merchant signs with the new one)
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.merchants import store

        found = await session.find(merchant)
        keyring = (await session.open_base()).keyring
        # Raises WrongMasterKey: a secret sealed with another key could never be opened by the service.
        await store.load(session.conn, keyring, found.merchant_id)
        async with session.conn.transaction():
            secret = await store.rotate_secret(session.conn, keyring, found.merchant_id, at_ms=now_ms())
            await record_change(session, "rotate_secret", found.merchant_id, None, {"rotated": True})
        await session.carry(found.merchant_id)
        return {"merchantId": found.merchant_id, "appKey": found.app_key, "appSecret": secret}

    terminal.print_answer(run(data, act), as_json)
    terminal.note(KEPT_ONCE)


@app.command("retire-secret")
def retire_secret(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Retire the older of two secrets. From the next request on it signs nothing.

    \b
    Example:
      merchant-wallet merchant retire-secret Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.merchants import store

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.conn.transaction():
            number = await store.retire_secret(session.conn, merchant_id, at_ms=now_ms())
            retired = {"retiredSecretNo": number}
            await record_change(session, "retire_secret", merchant_id, None, retired)
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, **retired}

    terminal.print_answer(run(data, act), as_json)


async def record_change(
    session: Session, what: str, merchant_id: int, before: dict[str, Any] | None, after: dict[str, Any]
) -> None:
    """Record a change of a merchant in the audit log, last in the change's transaction."""
    from merchant_wallet.merchants.two_person_changes import format_subject

    subject = format_subject(merchant_id)
    await session.record(f"merchant.{what}", subject, merchant_id=merchant_id, before=before, after=after)
