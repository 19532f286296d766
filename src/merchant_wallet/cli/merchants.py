"""`merchant`: create merchants, and show and change their settings.

Rules: an option is passed as text to `merchants.records`, which checks values. Secrets are printed once, by
the command that creates them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.cells import choose_cell
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.lookalikes import list_lookalikes, note_lookalikes
from merchant_wallet.cli.merchant_access import KEPT_ONCE
from merchant_wallet.cli.merchant_access import app as access
from merchant_wallet.cli.merchant_changes import change_settings, print_outcome
from merchant_wallet.cli.merchant_facts import describe, show_units
from merchant_wallet.cli.merchant_keys import app as keys
from merchant_wallet.cli.merchant_look import app as look
from merchant_wallet.cli.merchant_moves import app as moves
from merchant_wallet.cli.options import (
    DataOption,
    JsonOption,
    MerchantArgument,
    ProposalReasonOption,
    read_percent,
)
from merchant_wallet.cli.payout_rules import app as payout_rules
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.store import Change

app = typer.Typer(help="Open merchants, change their settings, keys and secrets.", no_args_is_help=True)
app.add_typer(access)
app.add_typer(keys)
app.add_typer(look)
app.add_typer(moves)
app.add_typer(payout_rules)

LIST_COLUMNS = terminal.Table(
    "merchantId", "name", "appKey", "status", "currencyMode", "createdMs", spare=("currencyMode", "createdMs")
)

PercentText = Annotated[
    str | None,
    typer.Option(metavar="PERCENT", help="Part of the amount with the percent sign, such as 0.5%."),
]
AmountText = Annotated[str | None, typer.Option(metavar="AMOUNT", help="In USDT, such as 1000 or 2.5.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call the merchant.")],
    currency_mode: Annotated[
        Literal["KFB", "USDT"],
        typer.Option(help="KFB: both currencies. USDT: that one alone. It can change until the first entry."),
    ] = "KFB",
    cell: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The cell for its book. Default: the open one with the fewest merchants.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a merchant with its book, and print its key and secrets once.

    \b
    Examples:
      merchant-wallet merchant create Shop
      merchant-wallet merchant create "Coin Shop" --currency-mode USDT --json
    """

    same_name: list[int] = []

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import acts, store

        base = await session.open_base()
        keyring = base.keyring
        if others := await store.list_merchants(session.conn):
            # Raises WrongMasterKey: secrets sealed with another key could never be opened by the service.
            await store.load(session.conn, keyring, others[-1].merchant_id)
        async with session.conn.transaction():
            cell_id = await choose_cell(session, cell)
            made = await acts.create(
                session.conn,
                keyring,
                session.author(),
                name,
                currency_mode,
                # Outside the sandbox no command holds a seed: the accounts were derived ahead.
                seed=keyring.sandbox_seed() if base.settings.sandbox else None,
                cell_id=cell_id,
                secret_wait_ms=base.settings.secret_wait_ms,
            )
        await session.carry(made.merchant.merchant_id)
        same_name.extend(one.merchant_id for one in others if one.name == made.merchant.name)
        return {
            "merchantId": made.merchant.merchant_id,
            "appKey": made.merchant.app_key,
            "appSecret": made.app_secret,
            "callbackSecret": made.callback_secret,
        }

    terminal.print_answer(run(data, act), as_json)
    if same_name:
        others = ", ".join(map(str, same_name))
        terminal.note(f"Other merchants have the name {name}, too: {others}. Name each by its id or appKey.")
    terminal.note(KEPT_ONCE)


@app.command("list")
def list_all(
    status: Annotated[
        Literal["active", "suspended"] | None, typer.Option(help="Only those with this status.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List merchants, oldest first.

    \b
    Example:
      merchant-wallet merchant list --status suspended
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import store

        found = await store.list_merchants(session.conn)
        return {
            "merchants": [
                {
                    "merchantId": ref.merchant_id,
                    "name": ref.name,
                    "appKey": ref.app_key,
                    "status": ref.status,
                    "currencyMode": ref.currency_mode,
                    "createdMs": ref.created_ms,
                }
                for ref in found
                if status in (None, ref.status)
            ]
        }

    terminal.print_list(run(data, act), "merchants", LIST_COLUMNS, as_json)


@app.command()
def show(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show a merchant's settings and its own deposit addresses. Its secrets are never shown again.

    \b
    Example:
      merchant-wallet merchant show Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import store
        from merchant_wallet.merchants.addresses import give_addresses

        found = await session.find(merchant)
        base = await session.open_base()
        loaded = await store.load(session.conn, base.keyring, found.merchant_id)
        if loaded is None:
            raise Failure(f"Merchant {found.merchant_id} has no book or no secrets.", REFUSED)
        # An address that is shown must be watched. An older merchant may not have its addresses yet.
        async with session.cell(found.merchant_id) as cell:
            await give_addresses(session.conn, cell, found.merchant_id, loaded.account_xpubs)
        return describe(loaded)

    document = run(data, act)
    terminal.print_answer(document if as_json else show_units(document), as_json)


@app.command("set")
def set_(
    merchant: MerchantArgument,
    transfer_fee_rate: PercentText = None,
    withdraw_fee_rate: PercentText = None,
    withdraw_fee_min: AmountText = None,
    approval_limit: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="Withdrawals above this wait for an operator's approval."),
    ] = None,
    second_approval_limit: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="Withdrawals above this need two different people's approval."),
    ] = None,
    daily_limit: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Withdrawals per UTC day; none removes the limit.")
    ] = None,
    rate_limit: Annotated[
        str | None,
        typer.Option(metavar="N", help="Requests a second; 0 for no limit, none for the platform's."),
    ] = None,
    sign_method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="HMAC, or MD5 for a client that can't do better.")
    ] = None,
    auto_register: Annotated[
        bool | None,
        typer.Option(
            "--auto-register/--no-auto-register", help="Open a wallet when an unknown id is looked up."
        ),
    ] = None,
    require_pin: Annotated[
        bool | None,
        typer.Option(
            "--require-pin/--no-require-pin", help="Refuse debits until the sub-user has set a PIN."
        ),
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR", help="Where requests may come from; repeat it. Replaces the list; none: anywhere."
        ),
    ] = None,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="Where withdrawals may go; repeat it. Replaces the list; none: anywhere."
        ),
    ] = None,
    deposit_notify_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the merchant is told of deposits; none: nowhere."),
    ] = None,
    frame_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Whose pages may frame the wallet page; repeat it. Replaces the list; none: nobody's.",
        ),
    ] = None,
    billing_address: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The address on invoices; a semicolon begins a new line. none: no address."
        ),
    ] = None,
    tax_id: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The tax id on invoices; none: no tax id.")
    ] = None,
    disable: Annotated[
        list[str] | None, typer.Option(metavar="OPERATION", help="Switch an operation off; repeat it.")
    ] = None,
    enable: Annotated[
        list[str] | None, typer.Option(metavar="OPERATION", help="Switch it on again; repeat it.")
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change settings, all or none, from the next request on.

    Outside the sandbox a change that loosens a safeguard (a higher limit, another address, a fee far from the
    present one) is only proposed: give a --reason, and another person accepts it. The other changes are made
    now.

    \b
    Examples:
      merchant-wallet merchant set Shop --transfer-fee-rate 0.5% --approval-limit 500
      merchant-wallet merchant set Shop --allow-network 192.0.2.0/24 --allow-network 198.51.100.7/32
      merchant-wallet merchant set Shop --allow-network none
      merchant-wallet merchant set Shop --disable exchange --enable getWithdrawFee
      merchant-wallet merchant set Shop --approval-limit 5000 --reason "contract of 3 March"
    """
    texts = {
        "transfer-fee-rate": read_percent(transfer_fee_rate, "--transfer-fee-rate"),
        "withdraw-fee-rate": read_percent(withdraw_fee_rate, "--withdraw-fee-rate"),
        "withdraw-fee-min": withdraw_fee_min,
        "approval-limit": approval_limit,
        "second-approval-limit": second_approval_limit,
        "daily-limit": daily_limit,
        "rate-limit": rate_limit,
        "deposit-notify-url": deposit_notify_url,
        "billing-address": billing_address,
        "tax-id": tax_id,
        "sign-method": sign_method,
        "auto-register": _switch(auto_register),
        "require-pin": _switch(require_pin),
        "networks": " ".join(allow_network) if allow_network else None,
        "allowed-addresses": " ".join(allow_address) if allow_address else None,
        "frame-origins": " ".join(frame_origin) if frame_origin else None,
    }
    typed = {name: text for name, text in texts.items() if text is not None}
    off, on = set(disable or ()), set(enable or ())
    if both := sorted(off & on):
        raise Failure(f"{both[0]} can't be both disabled and enabled.", CANNOT_RUN)
    if not (typed or off or on):
        raise Failure("Nothing to change: name at least one setting (see --help).", CANNOT_RUN)

    async def act(
        session: Session,
    ) -> "tuple[Change, ProposedChange | None, list[Mapping[str, Any]], str | None]":
        from merchant_wallet.callbacks.target_policy import find_closed_address, list_networks
        from merchant_wallet.merchants.two_person_changes import with_settings
        from merchant_wallet.reporting.lookalikes import NewAddress

        merchant_id = (await session.find(merchant)).merchant_id
        change, proposed = await change_settings(session, merchant_id, typed, off, on, reason)
        wanted = with_settings(change.before, typed).allowed_addresses - change.before.allowed_addresses
        new = [NewAddress(merchant_id, address) for address in sorted(wanted)]
        settings = session.settings
        networks = list_networks(settings.callback_networks, sandbox=settings.sandbox)
        closed = find_closed_address(deposit_notify_url or "", networks)
        return change, proposed, await list_lookalikes(session, new), closed

    change, proposed, alike, closed = run(data, act)
    # Only a new allow-list can have some.
    more = {"lookalikes": alike} if allow_address else {}
    print_outcome(change, proposed, as_json, **more)
    note_lookalikes(alike)
    if closed is not None:
        terminal.note(
            f"Callbacks to {closed} will fail: it is no public address. Give a URL with a public one, or"
            " allow its network with WALLET_CALLBACK_NETWORKS."
        )


def _switch(on: bool | None) -> str | None:
    return None if on is None else "on" if on else "off"
