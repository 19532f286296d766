"""What the commands of the archive share: keys and folder, and what they print."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.book.archive.months import ArchivedMonth
    from merchant_wallet.book.checkpoint_keys import CheckpointKeys

COLUMNS: Final = terminal.Table("merchantId", "month", "entries", "bytes", "rows", "file")
WRONG: Final = "WRONG"


class Outcome:
    """What a command prints: months, books of which something stays, and what is wrong."""

    def __init__(self) -> None:
        self.months: list[dict[str, Any]] = []
        self.left: list[dict[str, Any]] = []
        self.faults: list[dict[str, Any]] = []
        self.has_jobs_in_the_way = False

    def add(self, folder: "ArchiveFolder", month: "ArchivedMonth") -> None:
        """Add a month."""
        path = folder.file_of(month.merchant_id, month.month)
        rows = "removed" if month.is_removed else "partly" if month.is_begun else "kept"
        self.months.append(
            {
                "merchantId": month.merchant_id,
                "month": month.month,
                "entries": month.entries,
                "bytes": path.stat().st_size if path.is_file() else None,
                "rows": rows,
                "file": str(path),
            }
        )

    def show(self, as_json: bool) -> None:
        """Print everything. Raises typer.Exit if something is wrong."""
        if as_json:
            document = {
                "ok": not self.faults,
                "months": self.months,
                "left": self.left,
                "faults": self.faults,
            }
            terminal.print_document(document)
        else:
            terminal.print_table(COLUMNS, self.months)
        for one in self.left:
            terminal.note(f"Merchant {one['merchantId']}: no further month was archived, {one['reason']}.")
        for one in self.faults:
            terminal.note(f"{WRONG}: merchant {one['merchantId']}: {one['text'].rstrip('.')}.")
        if self.faults:
            raise typer.Exit(REFUSED)


class Tools:
    """The archive's folder, the checkpoints, and the key that signs if something is changed."""

    def __init__(self, session: Session, folder: "ArchiveFolder", keys: "CheckpointKeys") -> None:
        self.session = session
        self.folder = folder
        self.keys = keys
        self._signer: CheckpointSigner | None = None

    @classmethod
    async def open(cls, session: Session, *, changes: bool = False) -> "Tools":
        """Load keys. With `changes`, also open the signer. Raises Failure."""
        from merchant_wallet.book.archive.files import ArchiveFolder
        from merchant_wallet.book.checkpoint_keys import load_keys

        base = await session.open_base()
        keys = await load_keys(session.conn, base.checkpoint_dir)
        tools = cls(session, ArchiveFolder(session.settings.archive_folder), keys)
        if changes:
            tools._open_signer()
        return tools

    def _open_signer(self) -> None:
        from merchant_wallet.audit.checkpointing.keys import has_private_key, open_or_create_signer

        settings = self.session.settings
        if self.keys.public_key is None:
            raise Failure("There are no signed checkpoints yet. Start `work`, and wait a minute.", CANNOT_RUN)
        signer = open_or_create_signer(settings) if has_private_key(settings) else None
        if signer is None or signer.public_key != self.keys.public_key:
            raise Failure(
                f"The checkpoint key is not in {settings.checkpoint_key_path}, or is another one: run this"
                " where the workers' key is, or name it with WALLET_CHECKPOINT_KEY_FILE.",
                CANNOT_RUN,
            )
        self._signer = signer

    def sign(self, text: str) -> str:
        """The hex signature of a text."""
        assert self._signer is not None, "the command changes something"
        return self._signer.sign_text(text)

    async def read_checkpointed(self, merchant_id: int) -> dict[int, str]:
        """The hash that each checkpoint of a book saw. Raises ArchiveWrong."""
        from merchant_wallet.book.archive.checks import read_checkpointed

        directory = self.session.settings.checkpoint_folder
        return await asyncio.to_thread(read_checkpointed, directory, self.keys, merchant_id)

    async def check_before(self, before_ms: int) -> None:
        """Raises Failure for a month that has not ended by this clock."""
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.book.archive.months import format_month, parse_month

        if before_ms > parse_month(format_month(now_ms())):
            raise Failure(f"--before: {format_month(now_ms())} has not ended; give it or an earlier month.")
