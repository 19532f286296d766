"""`inbox`: what waits for a person, and who may act on it."""

from collections.abc import Mapping
from typing import Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer()

COLUMNS = terminal.Table(
    "kind",
    "text",
    "merchantId",
    "amount",
    "sinceMs",
    "mayAct",
    "command",
    spare=("mayAct", "merchantId", "sinceMs"),
)
COMMANDS: Final[Mapping[str, str]] = {
    "stop": "wallets list",
    "frozen": "withdrawals show {order_id}",
    "difference": "reconcile",
    "obstacle": "wallets list",
    "reading": "deposits chains",
    "proposal": "proposals show {number}",
    "cold": "cold show",
    "approval": "withdrawals approve {order_id}",
    "deposit": "deposits show {tx_hash}",
    "screening": "screening show {screening_no}",
    "sweep": "sweep list",
    "callback": "callbacks list --merchant {merchant}",
}
"""The command that shows or decides an item, by its kind. The console alone has the rest."""


@app.command()
def inbox(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List what waits for a person, the most urgent first: at most a thousand of each kind.

    \b
    Example:
      merchant-wallet inbox
    """
    found = run(data, list_waiting)
    terminal.print_list(found, "items", COLUMNS, as_json, show=_show)
    if found["more"]:
        terminal.note_more(f"act on what has waited longest ({', '.join(found['more'])})")


async def list_waiting(session: Session) -> dict[str, Any]:
    """The items of the inbox, the cells that are away, and the kinds that could not be read."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.fair_places import SERVICE
    from merchant_wallet.base.money import format_units
    from merchant_wallet.operators import records
    from merchant_wallet.reporting.inbox import Asked, list_actors, read_inbox
    from merchant_wallet.web.cells import CellPools
    from merchant_wallet.web.inbox_sources import BY_KIND, SOURCES
    from merchant_wallet.web.languages import Language, translate

    at_ms, pools = now_ms(), CellPools(session.cells, 1)
    try:
        async with pools.open(session.conn, SERVICE) as cells:
            asked = Asked(session.conn, cells, None, at_ms, session.settings.shown_chains)
            found = await read_inbox(asked, SOURCES)
    finally:
        await pools.close()
    session.away = list(found.away)
    people = await records.list_everybody(session.conn)
    items = []
    for group in found.groups:
        source = BY_KIND[group.kind]
        for item in group.items:
            items.append(
                {
                    "kind": group.kind,
                    "key": item.key,
                    "text": translate(Language.EN, source.texts[item.form], **item.values),
                    "merchantId": item.merchant_id,
                    "amount": None if item.amount_units is None else format_units(item.amount_units),
                    "currency": item.currency or None,
                    "sinceMs": item.since_ms,
                    "mayAct": []
                    if source.ends_alone
                    else [one.name for one in list_actors(source, item, people, at_ms)],
                    "command": name_command(session, group.kind, item.values),
                    "path": source.url_of(item),
                }
            )
    return {
        "items": items,
        "more": [group.kind for group in found.groups if group.has_more],
        "away": list(found.away),
        "unread": list(found.unread),
    }


def name_command(session: Session, kind: str, values: Mapping[str, str]) -> str | None:
    """The command for an item, or None if only the console has one."""
    command = COMMANDS.get(kind)
    return None if command is None else session.name_command(command.format(**values))


def _show(item: Mapping[str, Any]) -> Mapping[str, Any]:
    amount = "" if item["amount"] is None else f"{item['amount']} {item['currency']}"
    may_act = ", ".join(item["mayAct"]) or "nobody"
    return {**item, "amount": amount, "mayAct": may_act, "command": item["command"] or item["path"]}
