"""`rates`: the exchange rates of the platform and of single merchants."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.base.money import MAX_RATE_AGE_S, format_rate, parse_rate
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantOption, ProposalReasonOption
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_proposed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.exchange.rates import RateLine

app = typer.Typer(help="Set, pause and list exchange rates.", no_args_is_help=True)

LIST_COLUMNS = ("merchantId", "direction", "rate", "paused", "setMs", "maxAgeMs")

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
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.exchange import rates

        scope = await _find_scope(session, merchant)
        max_age_ms = None if max_age is None else max_age * 1000

        def set_rate() -> "Awaitable[RateLine]":
            return rates.set_rate(session.conn, direction, rate_e8, scope, max_age_ms, at_ms=now_ms())

        async with session.conn.transaction():
            # Nobody may change a rate between the check and the change.
            await rates.lock_rates(session.conn)
            told = describe_reason(reason)
            if await _needs_two(session, direction, rate_e8, scope):
                made = await _propose(session, direction, rate_e8, max_age_ms, scope, reason, set_rate)
                if made is not None:
                    return made
                told = describe_lone_change(session, reason)
            return await _change(session, "set", scope, direction, set_rate, told)

    done = run(data, act)
    if isinstance(done, dict):
        terminal.print_answer(done, as_json)
    else:
        print_proposed(done, as_json)


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
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.exchange import rates

        scope = await _find_scope(session, merchant)

        def pause_rate() -> "Awaitable[RateLine]":
            return rates.pause(session.conn, direction, scope, paused, at_ms=now_ms())

        return await _change(session, "pause" if paused else "resume", scope, direction, pause_rate)

    terminal.print_answer(run(data, act), as_json)


async def _needs_two(session: Session, direction: str, rate_e8: int, scope: int) -> bool:
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.exchange import two_person_changes

    settings = session.settings
    return settings.needs_two_people and await two_person_changes.needs_two(
        session.conn, direction, rate_e8, scope, at_ms=now_ms(), band_e8=settings.rate_band
    )


async def _propose(
    session: Session,
    direction: str,
    rate_e8: int,
    max_age_ms: int | None,
    scope: int,
    reason: str | None,
    act: "Callable[[], Awaitable[RateLine]]",
) -> "ProposedChange | None":
    """Propose a rate that the rule about rates allows. Raises RateRefused, and what `propose` raises."""
    from merchant_wallet.exchange import rates, two_person_changes

    before = two_person_changes.describe(await rates.find_line(session.conn, scope, direction))
    async with session.conn.transaction(force_rollback=True):
        await act()
    after = two_person_changes.describe_wanted(rate_e8, max_age_ms)
    subject = two_person_changes.format_subject(direction)
    return await propose(
        session, two_person_changes.SET, subject, (before, after), reason, merchant_id=scope or None
    )


async def _change(
    session: Session,
    what: str,
    scope: int,
    direction: str,
    act: "Callable[[], Awaitable[RateLine]]",
    told: "Mapping[str, Any] | None" = None,
) -> dict[str, Any]:
    from merchant_wallet.exchange import rates

    async with session.conn.transaction():
        await rates.lock_rates(session.conn)
        lines = await rates.list_rates(session.conn)
        before = [line for line in lines if (line.merchant_id, line.direction) == (scope, direction)]
        after = describe(await act())
        await session.record(
            f"rate.{what}",
            f"rate {direction}",
            merchant_id=scope or None,
            before=describe(before[0]) if before else None,
            after={**after, **(told or {})},
        )
    return after


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
