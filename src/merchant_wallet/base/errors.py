"""The base of errors that pass by themselves."""


class TransientError(Exception):
    """Base class of our own transient errors: the same call may succeed later."""
