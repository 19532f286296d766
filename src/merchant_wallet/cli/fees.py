"""`fees`: the fees that the platform has earned, and taking them out of the books."""

from typing import Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import (
    CurrencyArgument,
    DataOption,
    JsonOption,
    MerchantArgument,
    RefOption,
    check_ref,
    note_repeat,
    read_amount,
)
from merchant_wallet.cli.session import Session, find_actor, run

app = typer.Typer(help="The platform's earned fees.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table("merchantId", "merchantName", "currency", "held", "withdrawn", "earned")
DEFAULT_REASON = "platform fees withdrawn"


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the fees earned from each merchant: still in its book, and taken out.

    \b
    Example:
      merchant-wallet fees list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.reporting import books
        from merchant_wallet.reporting.cells import COMMAND_PATIENCE, read_still

        async with session.reach_cells() as reached:

            async def read() -> list[books.FeesView]:
                return [fees for cell in reached.connections for fees in await books.list_fees(cell)]

            found = await read_still(session.conn, read, COMMAND_PATIENCE)
        reached.note_away()
        # Each cell gives its merchants in order.
        found.sort(key=lambda fees: fees.merchant_id)
        return {
            "fees": [
                {
                    "merchantId": fees.merchant_id,
                    "merchantName": fees.merchant_name,
                    "currency": fees.currency,
                    "held": format_units(fees.held_units),
                    "withdrawn": format_units(fees.withdrawn_units),
                    "earned": format_units(fees.earned_units),
                }
                for fees in found
            ],
            "awayCells": session.away,
        }

    terminal.print_list(run(data, act), "fees", LIST_COLUMNS, as_json)


@app.command()
def withdraw(
    merchant: MerchantArgument,
    currency: CurrencyArgument,
    amount: Annotated[
        str | None, typer.Argument(metavar="[AMOUNT]", help="Default: all that is held.", show_default=False)
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help=f'Why. The journal keeps it for ever. Default: "{DEFAULT_REASON}".',
            show_default=False,
        ),
    ] = None,
    ref: RefOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take earned fees out of a merchant's book, with a reason.

    `held` is what the book still holds of this currency afterwards. With --ref the entry is made only
    once, as with `book credit`.

    \b
    Examples:
      merchant-wallet fees withdraw Shop KFB --reason "November"
      merchant-wallet fees withdraw Shop USDT 12.5 --reason "to treasury" --ref 2025-11
    """
    amount_units = None if amount is None else read_amount(amount)
    name = check_ref(ref)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.book.commands import WithdrawFees
        from merchant_wallet.book.outcomes import Adjusted

        merchant_id = (await session.find(merchant)).merchant_id
        command = WithdrawFees(currency, amount_units, reason or DEFAULT_REASON, find_actor(), name)
        adjusted = await session.ask(merchant_id, command)
        assert isinstance(adjusted, Adjusted)
        return {
            "merchantId": merchant_id,
            "entryId": adjusted.entry_id,
            "currency": currency,
            "amount": format_units(adjusted.amount_units),
            "held": format_units(adjusted.balance_units),
            "ref": name,
            "repeated": adjusted.repeated,
        }

    document = run(data, act)
    terminal.print_answer(document, as_json)
    note_repeat(document)
    if reason is None and not document["repeated"]:
        terminal.note(f'No --reason was given: the journal has "{DEFAULT_REASON}".')
