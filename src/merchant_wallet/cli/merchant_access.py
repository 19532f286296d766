"""`merchant suspend` and others: whether a merchant may call, and with which secrets.

Rules: a secret is printed once, by the command that creates it.
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
        from merchant_wallet.merchants import acts, records

        merchant_id = (await session.find(merchant)).merchant_id
        change = acts.suspend if suspended else acts.resume
        status = records.SUSPENDED if suspended else records.ACTIVE
        changed = await change(session.conn, session.author(), merchant_id)
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
        from merchant_wallet.merchants import acts, store

        found = await session.find(merchant)
        keyring = (await session.open_base()).keyring
        # Raises WrongMasterKey: a secret sealed with another key could never be opened by the service.
        await store.load(session.conn, keyring, found.merchant_id)
        secret = await acts.rotate_secret(session.conn, keyring, session.author(), found.merchant_id)
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
        from merchant_wallet.merchants import acts

        merchant_id = (await session.find(merchant)).merchant_id
        number = await acts.retire_secret(session.conn, session.author(), merchant_id)
        await session.carry(merchant_id)
        return {"merchantId": merchant_id, "retiredSecretNo": number}

    terminal.print_answer(run(data, act), as_json)
