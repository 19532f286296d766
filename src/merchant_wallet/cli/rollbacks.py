"""`book accept-rollback`: let payouts go on after the database was rolled back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import SOURCE, Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.audit.checkpointing.acceptance import Accepted
    from merchant_wallet.audit.rollback.evidence import RollbackEvidence
    from merchant_wallet.base.settings import Settings

app = typer.Typer()

RECORD_ADVICE: Final = (
    "It says which orders were signed in the lost time. Give its newest copy with --signer-record FILE, or "
    "freeze every open order with --freeze-open."
)
UNREADABLE_ADVICE: Final = (
    "The signer signs nothing with this file either. Restore the newest complete one, or move it away and "
    "use --freeze-open."
)
KEY_ADVICE: Final = (
    "restore the right checkpoint.pub. If the key is lost, --new-key keeps all checkpoints as evidence."
)
EVIDENCE_COLUMNS: Final = ("subject", "merchantId", "kind", "cause", "sinceMs")


@app.command("accept-rollback")
def accept_rollback(
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="What happened. The audit log keeps it for ever."),
    ],
    new_key: Annotated[
        bool, typer.Option("--new-key", help="The checkpoint key is lost: create or use a new one.")
    ] = False,
    signer_record: Annotated[
        Path | None,
        typer.Option(
            "--signer-record",
            metavar="FILE",
            help="The signer's newest signed.jsonl, if the signer has its own data folder.",
        ),
    ] = None,
    freeze_open: Annotated[
        bool,
        typer.Option("--freeze-open", help="Without that record: freeze every open order."),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let payouts go on after the database was rolled back, when you know what was lost and why.

    This accepts all evidence of a rollback that `doctor` shows. Checkpoints that do not match the database
    are kept as evidence, in a folder beside the others. Enter what was lost before you do this.

    Open orders for which the signer signed more than the database knows are frozen. The signer's record says
    which. Without the record, --freeze-open freezes all open orders.

    \b
    Example:
      merchant-wallet book accept-rollback --reason "restored the dump of 02:00, lost orders entered by ann"
    """
    if not reason.strip():
        raise Failure("--reason must say what happened.")

    async def act(session: Session) -> dict[str, Any]:
        return _describe(await _accept(session, reason.strip(), new_key, signer_record, freeze_open))

    document = run(data, act)
    terminal.print_list(document, "signs", EVIDENCE_COLUMNS, as_json)
    if document["evidence"] is not None:
        terminal.note(f"The checkpoints that do not match the database are kept in {document['evidence']}.")
    for order_id in document["frozenOrders"]:
        terminal.note(
            f"Order {order_id} is frozen because it may have been paid: `withdrawals show {order_id}`."
        )
    if new_key:
        terminal.note("Restart every `work` and `up`: with the old key they no longer sign checkpoints.")


async def _accept(
    session: Session, reason: str, new_key: bool, given: Path | None, freeze_open: bool
) -> "Accepted":
    from merchant_wallet.audit.checkpointing.acceptance import (
        AcceptanceRequest,
        EvidenceSources,
        KeyDiffers,
        NothingToAccept,
        RecordMissing,
        accept,
    )
    from merchant_wallet.audit.checkpointing.keys import open_or_create_signer
    from merchant_wallet.audit.rollback.signer_record import RecordUnreadable
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.book.checkpoint_keys import OLD_KEY
    from merchant_wallet.postgres.jobs import JobInTheWay

    base = await session.open_base()
    old_key, settings = base.keyring.derive(OLD_KEY), session.settings
    sources = EvidenceSources(base.checkpoint_dir, old_key, _find_record(settings, given, freeze_open))
    request = AcceptanceRequest(find_actor(), reason, SOURCE, now_ms())
    signer = open_or_create_signer(settings, old_key) if new_key else None
    try:
        async with session.connect_all() as databases:
            return await accept(databases, sources, request, new_signer=signer, freeze_open=freeze_open)
    except JobInTheWay as other:
        raise Failure(str(other)) from None
    except NothingToAccept:
        raise Failure("There is no evidence of a rollback of this database. Nothing was changed.") from None
    except KeyDiffers as differs:
        raise Failure(f"{differs}: {KEY_ADVICE}") from None
    except RecordMissing as missing:
        raise Failure(f"The signer's record {missing} does not exist. {RECORD_ADVICE}") from None
    except RecordUnreadable as unreadable:
        raise Failure(f"{unreadable}, nothing was accepted. {UNREADABLE_ADVICE}") from None


def _find_record(settings: "Settings", given: Path | None, freeze_open: bool) -> Path | None:
    """The signer's record, or None if there is none. Raises Failure if it must be named."""
    from merchant_wallet.chains.keys.keystore import JOURNAL
    from merchant_wallet.processes.signers import find_keys_folder

    if given is not None or settings.sandbox:
        return given
    if settings.signer_socket is None:
        return find_keys_folder(settings) / JOURNAL
    if not freeze_open:
        raise Failure(f"The signer is a separate process (WALLET_SIGNER_SOCKET). {RECORD_ADVICE}")
    return None


def _describe(accepted: "Accepted") -> dict[str, Any]:
    return {
        "frozenOrders": list(accepted.frozen_orders),
        "signs": [describe_evidence(item) for item in accepted.evidence],
        "evidence": None if accepted.folder is None else str(accepted.folder),
        "files": [{"name": file.name, "bytes": file.size, "sha256": file.sha256} for file in accepted.files],
    }


def describe_evidence(evidence: "RollbackEvidence") -> dict[str, Any]:
    """One piece of evidence of a rollback for output."""
    return {
        "subject": evidence.subject,
        "merchantId": evidence.merchant_id or None,
        "kind": evidence.kind,
        "cause": evidence.cause,
        "sinceMs": evidence.since_ms,
    }
