"""How a submission can fail although no rule refused it."""

from merchant_wallet.base.errors import TransientError


class Unavailable(TransientError):
    """Not now: the queue is full, the database is away or the service stops (code 50300).

    Nothing was done. The exception is `CommitUnknown`.
    """


class CommitUnknown(Unavailable):
    """The database went away during COMMIT, so nobody knows whether it was done (code 50300).

    A request may be repeated under its mcOrderId. A caller without such an id must look before it asks again.
    """


class BookClosed(Unavailable):
    """The book is not here, or it is closed: it is being moved to another cell, or has been (code 50300)."""


class CommandFailed(Exception):
    """An internal error in this one command, while judging or writing it (code 50000). Nothing was done."""
