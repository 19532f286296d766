"""What can go wrong with a back-up."""


class BackupError(Exception):
    """A back-up can't be made, read or restored. The text says what to do."""


class StoreAway(BackupError):
    """The store does not answer, or refuses. The same may work later."""


class ObjectGone(StoreAway):
    """An object of a list is not there any more: what it contained is in another one, or was removed."""


class UnusableObject(BackupError):
    """An object is not what this installation stores under such a name. The reader says what to do."""


class UnauthenticObject(UnusableObject):
    """An object has no signature of this installation's master key."""
