"""The pages' templates are compiled once for all workers and runs, which takes a processor ten seconds.

Rules: what is kept lies in pytest's own cache and belongs to one state of the sources. Jinja evaluates
constants in a template when it compiles it.
"""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from merchant_wallet.web import templates

SOURCES: Final = Path(__file__).parents[1] / "src" / "merchant_wallet"
NAME: Final = "templates"


def digest_sources() -> str:
    """A text that changes with every source of the package, and with the version of Jinja."""
    digest = hashlib.sha256(version("jinja2").encode())
    for folder, folders, names in os.walk(SOURCES):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".html", ".toml")):
                path = Path(folder, name)
                found = path.stat()
                digest.update(f"{path}\0{found.st_mtime_ns}\0{found.st_size}\0".encode())
    return digest.hexdigest()[:16]


class CompiledTemplates(BytecodeCache):
    """Compiled templates in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            bucket.bytecode_from_string((self._folder / bucket.key).read_bytes())
        except FileNotFoundError:
            return

    def dump_bytecode(self, bucket: Bucket) -> None:
        # Other workers read and write the same files. A run with newer sources removes the folder.
        written = self._folder / f"{bucket.key}.{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            written.write_bytes(bucket.bytecode_to_string())
            written.replace(self._folder / bucket.key)


def open_folder(cache_folder: Path) -> Path:
    """The folder for the sources as they are. Those of former sources are removed."""
    folder = cache_folder / digest_sources()
    if not folder.exists():
        for former in cache_folder.iterdir():
            shutil.rmtree(former, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled_once(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """For the whole run."""
    cached = getattr(pytestconfig, "cache", None)
    parent = cached.mkdir(NAME) if cached else tmp_path_factory.mktemp(NAME)
    compiled = CompiledTemplates(open_folder(parent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "Environment", partial(Environment, bytecode_cache=compiled))
        yield
