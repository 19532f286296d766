"""`finance solvency`: what is owed and what is held, now and at each day's end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.finance_output import check_output, open_output, read_language
from merchant_wallet.cli.options import DataOption, ForceOption, JsonOption
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.reporting.finance.periods import Period
    from merchant_wallet.reporting.finance.solvency import Solvency, SolvencyDay

app = typer.Typer()

NOW_COLUMNS: Final = terminal.Table("currency", "owed", "held", "surplus", "fees", "desk", "rest")
DAY_COLUMNS: Final = terminal.Table("day", "currency", "owed", "held", "surplus", "fees", "desk")


@app.command()
def solvency(
    period: Annotated[
        str | None,
        typer.Argument(
            metavar="[PERIOD]",
            help="2026-10, 2026-10-05 or 2026-10-05..2026-10-12, in UTC. Default: the last 31 days.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the days as CSV to this file.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
    language: Annotated[str, typer.Option("--lang", metavar="LANG", help="Of the file: en or zh-CN.")] = "en",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is owed to merchants and sub-users and what is held for it, now and at each day's end.

    Owed is from the books, held from the last comparison with each chain (of the day). A day without one has
    none.

    \\b
    Examples:
      merchant-wallet finance solvency
      merchant-wallet finance solvency 2026-10 --json
      merchant-wallet finance solvency 2026-10 --output solvency.csv
    """

    # The document of --json is beside the file here, so that needs no check.
    check_output(output, as_json=False, force=force)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting.finance.solvency import list_solvency, read_solvency

        chains = session.settings.open_chains
        async with session.reach() as cells:
            now = await read_solvency(session.conn, cells, chains)
            days = await list_solvency(session.conn, cells, _read_period(period), chains)
        if output is not None:
            if cells.away:
                raise Failure(
                    f"Cells that are away: {', '.join(cells.away)}. Nothing was written.", CANNOT_RUN
                )
            _write(output, days, language, force=force)
        return {
            "now": [_describe(one) for one in now],
            "days": [_describe_day(one) for one in days],
            "awayCells": list(cells.away),
        }

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
        return
    terminal.print_table(NOW_COLUMNS, document["now"])
    for one in document["now"]:
        for chain in one["missingChains"]:
            terminal.note(f"{chain} was not compared yet, so what it holds is missing.")
    terminal.print_table(DAY_COLUMNS, document["days"], follows=True)
    if document["awayCells"]:
        terminal.note(
            f"Cells that are away: {', '.join(document['awayCells'])}. Their merchants are missing."
        )


def _read_period(text: str | None) -> "Period":
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.reporting.finance.periods import cut_future, last_days, parse_period

    if text is None:
        return last_days(now_ms())
    try:
        return cut_future(parse_period(text), now_ms())
    except ValueError as error:
        raise Failure(f"{error}.", CANNOT_RUN) from None


def _write(output: Path, days: "list[SolvencyDay]", language: str, *, force: bool) -> None:
    from functools import partial

    from merchant_wallet.web.finance_tables import render_solvency
    from merchant_wallet.web.languages import translate

    text = render_solvency(days, partial(translate, read_language(language)))
    with open_output(output, force=force) as stream:
        stream.write(text.encode())
    terminal.note(f"Written: {output}")


def _describe(one: "Solvency") -> dict[str, Any]:
    """One currency now. What is held on no chain has no `held`."""
    from merchant_wallet.base.currencies import USDT
    from merchant_wallet.base.money import format_units

    is_held = one.currency == USDT
    return {
        "currency": one.currency,
        "owedToMerchants": format_units(one.owed.merchant_units),
        "owedToSubUsers": format_units(one.owed.sub_user_units),
        "heldForWithdrawals": format_units(one.owed.hold_units),
        "owed": format_units(one.owed.owed_units),
        "held": format_units(one.held_units) if is_held else None,
        "surplus": format_units(one.surplus_units) if is_held else None,
        "fees": format_units(one.owed.fees_units),
        "desk": format_units(one.owed.desk_units),
        "rest": format_units(one.other_units) if is_held else None,
        "chains": [
            {
                "chainType": chain.chain,
                "readMs": chain.at_ms,
                "hot": format_units(chain.hot_units),
                "depositAddresses": format_units(chain.deposit_units),
                "cold": format_units(chain.cold_units),
                "inFlight": format_units(chain.in_flight_units),
                "isSound": chain.is_sound,
            }
            for chain in one.held
        ],
        "missingChains": list(one.missing) if is_held else [],
    }


def _describe_day(one: "SolvencyDay") -> dict[str, Any]:
    from merchant_wallet.base.money import format_units
    from merchant_wallet.reporting.finance.periods import format_day

    def shown(units: int | None) -> str | None:
        return None if units is None else format_units(units)

    return {
        "day": format_day(one.day),
        "currency": one.currency,
        "owed": format_units(one.owed_units),
        "held": shown(one.held_units),
        "surplus": shown(one.surplus_units),
        "fees": format_units(one.fees_units),
        "desk": format_units(one.desk_units),
    }
