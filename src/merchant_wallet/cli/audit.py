"""`audit`: show the audit log and verify that nobody has changed it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED
from merchant_wallet.cli.options import (
    DataOption,
    JsonOption,
    MerchantOption,
    ShortLimitOption,
    SinceOption,
    UntilOption,
    keep_former_name,
    read_days,
)
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.audit.records import AuditEntry
    from merchant_wallet.audit.verify import AuditViolation

app = typer.Typer(help="Read and verify the log of what was changed by whom.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table("auditNo", "atMs", "action", "sentence", "source", spare=("source", "action"))


@app.command("list")
def list_some(
    merchant: MerchantOption = None,
    actor: Annotated[
        str | None, typer.Option(metavar="ACTOR", help="Who, such as operator:ann or cli:root.")
    ] = None,
    action: Annotated[str | None, typer.Option(metavar="ACTION", help="What, such as merchant.set.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: ShortLimitOption = 50,
    before: Annotated[
        int | None, typer.Option(metavar="AUDIT_NO", min=1, help="Go on before this entry.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what was changed, newest first. An action that ends with .asked was not carried out yet.

    \b
    Examples:
      merchant-wallet audit list
      merchant-wallet audit list --merchant Shop --action merchant.set
      merchant-wallet audit list --actor operator:ann --limit 20 --before 4711
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.audit import records
        from merchant_wallet.console.audit_words import list_merchants
        from merchant_wallet.reporting.merchants import read_names
        from merchant_wallet.reporting.paging import split_page

        merchant_id = None if merchant is None else (await session.find(merchant)).merchant_id
        since_ms, until_ms = read_days(since, until)
        ends = [] if before is None else [before]
        if until_ms is not None:
            ends.append(await records.find_first(session.conn, until_ms))
        found = await records.list_entries(
            session.conn,
            actor=actor,
            action=action,
            merchant_id=merchant_id,
            before_no=min(ends, default=None),
            limit=limit + 1,
        )
        within = [entry for entry in found if since_ms is None or entry.at_ms >= since_ms]
        rows, last = split_page(within, limit)
        found_names = await read_names(session.conn, list_merchants(rows))
        # Two merchants may have one name.
        names = {number: f"{name} ({number})" for number, name in found_names.items()}
        return {"entries": [describe(entry, names) for entry in rows], "nextBefore": last and last.audit_no}

    document = run(data, act)
    hidden = (
        "Actors and actions are compared whole: operator:ann, cli:root, merchant.set. --json has both."
        if actor or action
        else ""
    )
    terminal.print_list(document, "entries", LIST_COLUMNS, as_json, hidden=hidden)
    if document["nextBefore"] is not None:
        terminal.note_more(f"--before {document['nextBefore']}")


keep_former_name(app, "show", "list", list_some)


@app.command()
def verify(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Hash the whole log again, and compare it with its head and with the signed checkpoints.

    Exit status 1 if something is wrong; the first wrong entry is named. The log may be in use.

    \b
    Example:
      merchant-wallet audit verify
    """
    document = run(data, _verify)
    violation = document["fault"]
    if as_json:
        terminal.print_document(document)
    else:
        terminal.print_answer({name: document[name] for name in document if name != "fault"}, as_json)
    if document["tornCheckpoint"]:
        terminal.note("The last checkpoint is half written, as after a crash.")
    if violation is not None:
        place = "" if violation["auditNo"] is None else f" at entry {violation['auditNo']}"
        terminal.note(f"WRONG{place}: {violation['text']}.")
        raise typer.Exit(REFUSED)


async def _verify(session: Session) -> dict[str, Any]:
    from merchant_wallet.audit import checkpoints
    from merchant_wallet.audit.verify import verify as verify_log
    from merchant_wallet.book.checkpoint_keys import load_keys

    base = await session.open_base()
    report = await verify_log(session.conn)
    # Not in the snapshot's transaction: the snapshot does not see checkpoints that were written meanwhile.
    keys = await load_keys(session.conn, base.checkpoint_dir)
    seen = await checkpoints.check_checkpoints(session.conn, keys, base.checkpoint_dir)
    violation = report.violation or seen.violation
    return {
        "ok": violation is None,
        "entries": report.entries,
        "headHash": report.head_hash.hex(),
        "checkpoints": seen.checked,
        "tornCheckpoint": seen.torn,
        "fault": None if violation is None else _describe_violation(violation),
    }


def _describe_violation(violation: "AuditViolation") -> dict[str, Any]:
    return {"auditNo": violation.audit_no, "text": violation.text}


def describe(entry: "AuditEntry", names: Mapping[int, str]) -> dict[str, Any]:
    """An entry for output, with its sentence. `names` are those of merchants."""
    from functools import partial

    from merchant_wallet.console.audit_words import say_entry
    from merchant_wallet.web.languages import Language, translate

    return {
        "auditNo": entry.audit_no,
        "atMs": entry.at_ms,
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "merchantId": entry.merchant_id,
        "source": entry.source,
        "before": entry.before,
        "after": entry.after,
        "hash": entry.hash.hex(),
        "sentence": say_entry(entry, names, partial(translate, Language.EN)),
    }
