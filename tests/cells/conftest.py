"""Databases with an apart cell."""

import pytest
from tests.cells.layout import Layout, open_near_layout


@pytest.fixture
def layout(url_with_cell: str) -> Layout:
    """Home in schema `public`, and an apart cell in schema `far` of the same database."""
    return open_near_layout(url_with_cell)
