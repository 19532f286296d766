"""Data folders for the own PostgreSQL."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from merchant_wallet import postgres


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A data folder that every user may pass into. Whatever server is still on it is stopped."""
    parent = Path(tempfile.mkdtemp(prefix="merchant-wallet-test-"))
    parent.chmod(0o711)
    folder = parent / "data"
    yield folder
    if folder.exists():
        postgres.start(folder, lambda _: None).stop()
    shutil.rmtree(parent)


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A data folder under one that is closed to all but its owner."""
    tmp_path.chmod(0o700)
    return tmp_path / "data"
