"""The base of errors that pass by themselves, and what led to an error."""

from collections.abc import Iterator


class TransientError(Exception):
    """Base class of our own transient errors: the same call may succeed later."""


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and the errors that led to it, also those of several tries."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
