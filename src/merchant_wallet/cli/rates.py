"""`rates`: the exchange rates of the platform and of single merchants."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.base.money import MAX_RATE_AGE_S, format_rate, parse_rate
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantOption, ProposalReasonOption
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.audit.records import Author
    from merchant_wallet.exchange.rates import RateLine

    Act = Callable[[Author], Awaitable[RateLine]]

app = typer.Typer(help="Set, remove, pause and list exchange rates.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table(
    "merchantId", "direction", "rate", "paused", "setMs", "maxAgeMs", spare=("maxAgeMs", "setMs")
)

Facts = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The facts of a proposal: before and after."""

DirectionArgument = Annotated[
    Literal["USDT:KFB", "KFB:USDT"],
    typer.Argument(metavar="DIRECTION", help="USDT:KFB or KFB:USDT, sent currency first."),
]


@app.command("set")
def set_(
    direction: DirectionArgument,
    rate: Annotated[str, typer.Argument(metavar="RATE", help="Units received per unit sent, such as 7.10.")],
    merchant: MerchantOption = None,
    max_age: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS", min=1, max=MAX_RATE_AGE_S, help="Refuse exchanges when the rate is older."
        ),
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a rate from the next exchange on. This also ends a pause.

    Without --merchant it is the platform's rate. A rate that would let a loop of exchanges make money is
    refused. Outside the sandbox a rate that moves further than WALLET_RATE_BAND in a day is only proposed:
    give a --reason, and another person accepts it.

    \b
    Examples:
      merchant-wallet rates set USDT:KFB 7.10
      merchant-wallet rates set KFB:USDT 0.14 --merchant Shop --max-age 3600
      merchant-wallet rates set USDT:KFB 8 --reason "devaluation of 22 November"
    """
    try:
        rate_e8 = parse_rate(rate)
    except ValueError as error:
        raise Failure(f"RATE: {error}.") from None

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.exchange import acts, two_person_changes

        scope = await _find_scope(session, merchant)
        max_age_ms = None if max_age is None else max_age * 1000

        async def set_rate(author: "Author") -> "RateLine":
            return await acts.set_rate(session.conn, author, direction, rate_e8, scope, max_age_ms)

        async def describe_proposed(line: "RateLine") -> Facts:
            wanted = two_person_changes.describe_wanted(rate_e8, max_age_ms)
            return acts.describe(line), wanted

        return await _change(session, (direction, scope, rate_e8), set_rate, describe_proposed, reason)

    print_changed(run(data, act), as_json)


@app.command()
def remove(
    direction: DirectionArgument,
    merchant: MerchantOption = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a rate. A merchant then has the platform's rate; without one, exchanges are refused.

    Outside the sandbox removing a merchant's rate is only proposed if the platform's rate is further away
    than WALLET_RATE_BAND: give a --reason, and another person accepts it. A pause stays.

    \b
    Examples:
      merchant-wallet rates remove KFB:USDT --merchant Shop
      merchant-wallet rates remove USDT:KFB
    """

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.exchange import acts, two_person_changes

        scope = await _find_scope(session, merchant)

        async def remove_rate(author: "Author") -> "RateLine":
            return await acts.remove_rate(session.conn, author, direction, scope)

        async def describe_proposed(line: "RateLine") -> Facts:
            return await two_person_changes.describe_removal(session.conn, line)

        return await _change(session, (direction, scope, None), remove_rate, describe_proposed, reason)

    print_changed(run(data, act), as_json)


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the rates that are set or paused, the platform's first (merchantId none).

    \b
    Example:
      merchant-wallet rates list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.exchange import rates

        return {"rates": [describe(line) for line in await rates.list_rates(session.conn)]}

    terminal.print_list(run(data, act), "rates", LIST_COLUMNS, as_json)


@app.command()
def pause(
    direction: DirectionArgument,
    merchant: MerchantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse exchanges in a direction from the next one on. The rate stays.

    A pause of the platform's rate does not affect merchants with their own rate.

    \b
    Example:
      merchant-wallet rates pause USDT:KFB --merchant Shop
    """
    _print_paused(direction, merchant, True, data, as_json)


@app.command()
def resume(
    direction: DirectionArgument,
    merchant: MerchantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a pause. A rate that became too old meanwhile must be set again.

    \b
    Example:
      merchant-wallet rates resume USDT:KFB --merchant Shop
    """
    _print_paused(direction, merchant, False, data, as_json)


def _print_paused(
    direction: str, merchant: str | None, paused: bool, data: DataOption, as_json: bool
) -> None:
    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.exchange import acts

        scope = await _find_scope(session, merchant)
        line = await acts.pause(session.conn, session.author(), direction, scope, paused=paused)
        await session.copy_rates()
        return describe(line)

    terminal.print_answer(run(data, act), as_json)


async def _change(
    session: Session,
    wanted: tuple[str, int, int | None],
    act: "Act",
    describe_proposed: "Callable[[RateLine], Awaitable[Facts]]",
    reason: str | None,
) -> "dict[str, Any] | ProposedChange":
    """Make a change, or propose it if two people are needed.

    `wanted` is the direction, the scope, and the rate, None to remove it. Raises RateRefused, and what
    `propose` raises.
    """
    from merchant_wallet.exchange import acts, rates, two_person_changes

    direction, scope, rate_e8 = wanted
    async with session.conn.transaction():
        # Nobody may change a rate between the check and the change.
        await rates.lock_rates(session.conn)
        told = describe_reason(reason)
        author, settings = session.author(), session.settings
        if settings.needs_two_people and await two_person_changes.needs_two(
            session.conn, direction, rate_e8, scope, at_ms=author.at_ms, band_e8=settings.rate_band
        ):
            facts = await describe_proposed(await rates.find_line(session.conn, scope, direction))
            async with session.conn.transaction(force_rollback=True):
                # A change that the rule about rates refuses is not proposed.
                await act(author)
            subject, merchant_id = acts.format_subject(direction), scope or None
            made = await propose(session, acts.SET, subject, facts, reason, merchant_id=merchant_id)
            if made is not None:
                return made
            told = describe_lone_change(session, reason)
        changed = describe(await act(author.with_facts(told)))
    await session.copy_rates()
    return changed


async def _find_scope(session: Session, merchant: str | None) -> int:
    from merchant_wallet.exchange.rates import PLATFORM

    return PLATFORM if merchant is None else (await session.find(merchant)).merchant_id


def describe(line: "RateLine") -> dict[str, Any]:
    """One direction of one scope for output. The platform has no merchantId."""
    return {
        "merchantId": line.merchant_id or None,
        "direction": line.direction,
        "rate": None if line.rate_e8 is None else format_rate(line.rate_e8),
        "paused": line.paused,
        "setMs": line.set_ms,
        "maxAgeMs": line.max_age_ms,
    }
