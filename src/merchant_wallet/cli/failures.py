"""Errors that a user can act on, as a sentence and an exit status.

Rules: status 1 is a refusal. Status 2 means that nothing could be asked: wrong configuration, database or
usage.
"""

import re
from typing import Final

REFUSED: Final = 1
CANNOT_RUN: Final = 2
PERMISSION_HINT: Final = " Use a user that may use it. Another folder for the wallet is named with --data."
STATUS_WORDS: Final = ("pending", "processing", "paid", "failed", "cancelled", "expired", "refunded")
"""The statuses of withdrawals, 0 to 6, as the pages call them."""
_STATUS: Final = re.compile(r"an order in status ([0-6])(?![0-9])")
_MOVED: Final = re.compile(r"be moved to status ([0-6])(?![0-9])")


class Failure(Exception):
    """Ends a command with a sentence on standard error and an exit status.

    `code` is the interface's code for the same refusal, if there is one.
    """

    def __init__(self, text: str, status: int = REFUSED, code: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.code = code


def explain(error: Exception) -> Failure | None:
    """The failure to show for an error, or None if the error is a fault of ours."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, BrokenPipeError):
        # The reader of our output has closed it. The caller ends quietly.
        return None
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        hint = PERMISSION_HINT if isinstance(error, PermissionError) else ""
        return Failure(f"{place}{error.strerror or str(error) or 'no answer in time'}.{hint}", CANNOT_RUN)
    if isinstance(error, UnicodeEncodeError):
        return Failure("An argument is not valid UTF-8 text.", CANNOT_RUN)
    return _explain_database(error) or _explain_setup(error) or _explain_refusal(error)


def describe_database_error(error: Exception) -> str:
    """What an error of the database means, with the server's own words, without the final full stop."""
    import psycopg

    from merchant_wallet.base.db import explain_error

    found = explain_error(error) if isinstance(error, psycopg.Error) else None
    return found.what if found else " ".join(str(error).split())


def _explain_database(error: Exception) -> Failure | None:
    # Imported only after an error: a command that works does not need them.
    import psycopg

    from merchant_wallet.base.cells import CellClosed
    from merchant_wallet.base.db import explain_error
    from merchant_wallet.book.errors import CommandFailed, CommitUnknown, Unavailable
    from merchant_wallet.reporting.cells import BooksMoving

    missing = psycopg.errors
    unfit = missing.UndefinedTable | missing.UndefinedColumn | missing.UndefinedFunction
    if isinstance(error, unfit | missing.UndefinedObject):
        return Failure(
            "The database's schema is not this program's: run `merchant-wallet migrate`, or upgrade the "
            f"program when the schema is newer ({error.diag.message_primary}).",
            CANNOT_RUN,
        )
    if isinstance(error, psycopg.Error) and (found := explain_error(error)):
        return Failure(str(found), CANNOT_RUN)
    if isinstance(error, CommitUnknown):
        return Failure(
            f"It is not known whether this was done: {error}. "
            "Look at `merchant-wallet book statement` before repeating it.",
            CANNOT_RUN,
        )
    if isinstance(error, BooksMoving):
        return Failure(str(error), CANNOT_RUN)
    if isinstance(error, Unavailable | CellClosed):
        return Failure(f"Not available now, nothing was done: {error}.", CANNOT_RUN)
    if isinstance(error, CommandFailed):
        return Failure("This failed by a fault of the service, nothing was done; the log above says more.")
    return None


def _explain_setup(error: Exception) -> Failure | None:
    from merchant_wallet.base.config import ConfigError
    from merchant_wallet.chains.keys.keystore import KeystoreError
    from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
    from merchant_wallet.chains.signer import SignerAway
    from merchant_wallet.chains.transport import NodeFailed, NodeRefused
    from merchant_wallet.merchants.keys import WrongMasterKey
    from merchant_wallet.postgres import PostgresError
    from merchant_wallet.postgres.backups.errors import BackupError
    from merchant_wallet.postgres.grants import GrantRefused
    from merchant_wallet.postgres.migration_files import MigrationError

    if isinstance(error, BackupError):
        return Failure(str(error))
    known = (
        ConfigError
        | GrantRefused
        | KeystoreError
        | SignerAway
        | MigrationError
        | PostgresError
        | WrongMasterKey
    )
    if isinstance(error, known):
        return Failure(str(error), CANNOT_RUN)
    if isinstance(error, ChainAway | ChainDisagrees | NodeFailed | NodeRefused):
        return Failure(f"The chain's nodes give no answer that can be used: {error}.", CANNOT_RUN)
    return None


def _explain_refusal(error: Exception) -> Failure | None:
    from merchant_wallet.approvals.changes import ChangeRefused
    from merchant_wallet.approvals.decisions import ProposalRefused
    from merchant_wallet.approvals.standing import RightLost
    from merchant_wallet.base.codes import Refused
    from merchant_wallet.exchange.rates import RateRefused
    from merchant_wallet.merchants.app_keys import KeyRefused
    from merchant_wallet.merchants.id_ranges import RangesExhausted
    from merchant_wallet.merchants.key_acts import KeyTooWide
    from merchant_wallet.merchants.settings import SettingRefused
    from merchant_wallet.merchants.store import MerchantAmbiguous, MerchantUnknown, SecretRefused
    from merchant_wallet.merchants.xpub_pool import PoolEmpty
    from merchant_wallet.operators.passwords import PasswordRefused
    from merchant_wallet.operators.records import OperatorRefused, OperatorUnknown
    from merchant_wallet.sub_users.acts import LoosensNow
    from merchant_wallet.sub_users.controls import SubUserUnknown

    if isinstance(error, Refused):
        refusal = error.refusal
        msg = _STATUS.sub(lambda found: f"an order that is {STATUS_WORDS[int(found[1])]}", refusal.msg)
        msg = _MOVED.sub(lambda found: f"be {STATUS_WORDS[int(found[1])]}", msg)
        figures = f"; {refusal.figures}" if refusal.figures else ""
        return Failure(f"Refused ({refusal.code}): {msg}{figures}.", code=refusal.code)
    known = (
        RateRefused
        | SettingRefused
        | KeyRefused
        | KeyTooWide
        | MerchantUnknown
        | RangesExhausted
        | SecretRefused
        | SubUserUnknown
        | OperatorUnknown
        | OperatorRefused
        | PasswordRefused
        | PoolEmpty
        | ProposalRefused
        | ChangeRefused
        | RightLost
        | LoosensNow
    )
    if isinstance(error, MerchantUnknown) and not isinstance(error, MerchantAmbiguous):
        return Failure(f"{error} `merchant-wallet merchant list` shows all.")
    return Failure(str(error)) if isinstance(error, known) else None
