"""Keeps the thread that builds PDF documents busy, so that documents wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from merchant_wallet.web.pdf.document import BUILDER


@contextmanager
def held_builder() -> Iterator[None]:
    """No document is built until the block ends."""
    released = threading.Event()
    BUILDER.submit(released.wait)
    try:
        yield
    finally:
        released.set()
