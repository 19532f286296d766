"""`book accept-rollback`: a person's word that a database that was rolled back may be paid from."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import SOURCE, Session, name_actor, run

if TYPE_CHECKING:
    from merchant_wallet.checkpointing.acceptance import Accepted
    from merchant_wallet.rollback.signs import Sign

app = typer.Typer()

SIGN_COLUMNS: Final = ("subject", "merchantId", "kind", "cause", "sinceMs")


@app.command("accept-rollback")
def accept_rollback(
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="What happened; it stays in the audit log for ever."),
    ],
    new_key: Annotated[
        bool, typer.Option("--new-key", help="The checkpoint key is lost: begin anew under another.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let payouts go on from a database that was rolled back, once you know what was lost and why.

    It accepts every sign of a rollback that `doctor` shows. The checkpoints that the database no longer holds
    are kept as evidence, in a folder beside the others. Enter what was lost before you do this.

    \b
    Example:
      merchant-wallet book accept-rollback --reason "restored the dump of 02:00, lost orders entered by ann"
    """
    if not reason.strip():
        raise Failure("--reason: say what happened.")

    async def act(session: Session) -> dict[str, Any]:
        return _describe(await _accept(session, reason.strip(), new_key))

    document = run(data, act)
    terminal.print_list(document, "signs", SIGN_COLUMNS, as_json)
    if document["evidence"] is not None:
        terminal.note(f"What the database no longer holds is kept in {document['evidence']}.")
    for order_id in document["frozenOrders"]:
        terminal.note(f"Order {order_id} is frozen, it may have been paid: `withdrawals show {order_id}`.")


async def _accept(session: Session, reason: str, new_key: bool) -> "Accepted":
    from merchant_wallet.book.checkpoint_keys import OLD_KEY
    from merchant_wallet.chains.keystore import JOURNAL
    from merchant_wallet.checkpointing.acceptance import NothingToAccept, Place, Word, accept
    from merchant_wallet.checkpointing.keys import open_or_create_signer
    from merchant_wallet.clock import now_ms
    from merchant_wallet.signers import keys_folder

    base = await session.open_base()
    old_key, settings = base.keyring.derive(OLD_KEY), session.settings
    place = Place(base.checkpoint_dir, old_key, keys_folder(settings) / JOURNAL)
    word = Word(name_actor(), reason, SOURCE, now_ms())
    signer = open_or_create_signer(settings, old_key) if new_key else None
    try:
        return await accept(session.conn, place, word, new_signer=signer)
    except NothingToAccept:
        raise Failure("Nothing shows a rollback of this database, nothing was changed.") from None


def _describe(accepted: "Accepted") -> dict[str, Any]:
    return {
        "frozenOrders": list(accepted.frozen_orders),
        "signs": [describe_sign(sign) for sign in accepted.signs],
        "evidence": None if accepted.folder is None else str(accepted.folder),
        "files": [{"name": file.name, "bytes": file.size, "sha256": file.sha256} for file in accepted.files],
    }


def describe_sign(sign: "Sign") -> dict[str, Any]:
    """A sign as it is printed."""
    return {
        "subject": sign.subject,
        "merchantId": sign.merchant_id or None,
        "kind": sign.kind,
        "cause": sign.cause,
        "sinceMs": sign.since_ms,
    }
