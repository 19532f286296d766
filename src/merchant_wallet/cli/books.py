"""`book`: an operator's own entries, and a book's accounts. `journals` has the commands that read a whole
journal, `rollbacks` what is done about a database that was rolled back.
"""

from typing import Annotated, Any

import typer

from merchant_wallet.cli import journals, rollbacks, terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import (
    AmountArgument,
    CurrencyArgument,
    DataOption,
    JsonOption,
    MerchantArgument,
    ReasonOption,
    RefOption,
    check_ref,
    note_repeat,
    read_amount,
)
from merchant_wallet.cli.session import Session, find_actor, run

app = typer.Typer(help="Credit and debit, read balances and statements, verify.", no_args_is_help=True)
app.add_typer(journals.app)
app.add_typer(rollbacks.app)

ACCOUNT_COLUMNS = terminal.Table("account", "currency", "balance")

SubUserOption = Annotated[
    str | None,
    typer.Option(
        "--sub-user", metavar="EXT", help="That sub-user's wallet instead of the merchant's balance."
    ),
]


@app.command()
def credit(
    merchant: MerchantArgument,
    currency: CurrencyArgument,
    amount: AmountArgument,
    reason: ReasonOption,
    sub_user: SubUserOption = None,
    ref: RefOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add an amount to a merchant's balance or a sub-user's wallet, with a reason.

    With --ref the entry is made only once, even if you run the command again. The same reference with other
    values is refused.

    \b
    Examples:
      merchant-wallet book credit Shop USDT 1000 --reason "deposit 2025-11-21" --ref "bank 4711"
      merchant-wallet book credit Shop KFB 50 --sub-user player-7 --reason "goodwill, ticket 12"
    """
    document = _adjust(merchant, currency, read_amount(amount), reason, sub_user, ref, data)
    terminal.print_answer(document, as_json)
    note_repeat(document)


@app.command()
def debit(
    merchant: MerchantArgument,
    currency: CurrencyArgument,
    amount: AmountArgument,
    reason: ReasonOption,
    sub_user: SubUserOption = None,
    ref: RefOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an amount from a merchant's balance or a sub-user's wallet, with a reason.

    With --ref the entry is made only once, as with `book credit`.

    \b
    Example:
      merchant-wallet book debit Shop USDT 250 --reason "entered twice, see entry 8589934594"
    """
    document = _adjust(merchant, currency, -read_amount(amount), reason, sub_user, ref, data)
    terminal.print_answer(document, as_json)
    note_repeat(document)


def _adjust(
    merchant: str,
    currency: str,
    signed_units: int,
    reason: str,
    sub_user: str | None,
    ref: str | None,
    data: DataOption,
) -> dict[str, Any]:
    name = check_ref(ref)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.book.commands import Adjust
        from merchant_wallet.book.outcomes import Adjusted

        found = await session.find(merchant)
        if signed_units > 0 and found.currency_mode == "USDT" != currency:
            raise Failure(f"Merchant {found.merchant_id} has USDT alone; {currency} there could not be used.")
        command = Adjust(currency, signed_units, reason, find_actor(), sub_user, name)
        adjusted = await session.ask(found.merchant_id, command)
        assert isinstance(adjusted, Adjusted)
        return {
            "merchantId": found.merchant_id,
            "entryId": adjusted.entry_id,
            "extUserId": sub_user,
            "currency": adjusted.currency,
            "amount": format_units(signed_units),
            "balance": format_units(adjusted.balance_units),
            "ref": name,
            "repeated": adjusted.repeated,
        }

    return run(data, act)


@app.command()
def show(
    merchant: MerchantArgument,
    after: Annotated[int, typer.Option(metavar="ACCOUNT_ID", min=0, help="Go on after this account.")] = 0,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="At most so many accounts.")
    ] = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a book's accounts and balances, and the head of its journal.

    \b
    Example:
      merchant-wallet book show Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.book.chart import is_listed
        from merchant_wallet.reporting import books

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            book = await books.show_book(cell, merchant_id, after_id=after, limit=limit)
        if book is None:
            raise Failure(f"Merchant {merchant_id} has no book.")
        return {
            "merchantId": merchant_id,
            "entryCount": book.entry_count,
            "lastEntryId": book.last_entry_id,
            "headHash": book.head_hash.hex(),
            "lastMs": book.last_ms,
            "accounts": [
                {
                    "accountId": account.account_id,
                    "account": account.name,
                    "currency": account.currency,
                    "balance": format_units(account.balance_units),
                }
                for account in book.accounts
                if is_listed(account.kind, account.balance_units, session.settings.shown_chains)
            ],
            "nextAfter": book.next_after,
        }

    document = run(data, act)
    # People get the key of the next page in a note.
    shown = document if as_json else {name: document[name] for name in document if name != "nextAfter"}
    terminal.print_answer(shown, as_json)
    if not as_json:
        terminal.print_table(ACCOUNT_COLUMNS, document["accounts"], follows=True)
    if document["nextAfter"] is not None:
        terminal.note(f"There are more accounts: --after {document['nextAfter']}")
