"""A book for each test that asks for one; see `tests/book/fake_writer.py`."""

from tests.book.conftest import fake_writer

__all__ = ["fake_writer"]
