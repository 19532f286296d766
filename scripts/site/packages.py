"""The clients as files that the service hands out below `/docs/clients`: a wheel for pip, a package for npm,
archives of the sources for PHP, Go and Java, the test vectors, and each client's quick start.

Rules: nothing is compiled or fetched here. The same sources give the same bytes: names are sorted, times and
owners are fixed. Tests stay out. All clients have the version of the service.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from scripts.site.texts import ROOT, read

SUMS: Final = "SHA256SUMS"
FOLDER: Final = "clients"
"""The folder of the site, below `/docs`."""
_URL: Final = re.compile(r"/docs/clients/([\w.-]+)")


class Archive(NamedTuple):
    """A client's archive: its name, the folder in it, the client's folder, and what is taken of that."""

    name: str
    top: str
    folder: str
    patterns: tuple[str, ...]


ARCHIVES: Final = (
    Archive(
        "merchant-wallet-client-{version}.tgz",
        "package",
        "clients/typescript",
        ("package.json", "README.md", "dist/*", "dist/cjs/*", "src/*.ts"),
    ),
    Archive(
        "merchant-wallet-php-{version}.tar.gz",
        "merchant-wallet-php-{version}",
        "clients/php",
        ("composer.json", "autoload.php", "README.md", "src/*.php", "examples/*.php"),
    ),
    Archive(
        "merchant-wallet-go-{version}.tar.gz",
        "merchant-wallet-go-{version}",
        "clients/go",
        ("go.mod", "README.md", "*.go", "examples/*/*.go"),
    ),
    Archive(
        "merchant-wallet-java-{version}.tar.gz",
        "merchant-wallet-java-{version}",
        "clients/java",
        ("pom.xml", "README.md", "src/main/**/*.java", "examples/*.java"),
    ),
    Archive(
        "merchant-wallet-vectors-{version}.tar.gz",
        "merchant-wallet-vectors-{version}",
        "vectors",
        ("README.md", "*.json"),
    ),
)
PROGRAMS: Final = {
    "quickstart.py": "client/examples/quickstart.py",
    "quickstart.mjs": "clients/typescript/examples/quickstart.mjs",
    "quickstart.php": "clients/php/examples/quickstart.php",
    "quickstart.go": "clients/go/examples/quickstart/main.go",
    "Quickstart.java": "clients/java/examples/Quickstart.java",
}
"""The quick starts, without their marks."""


def make_packages() -> dict[str, bytes]:
    """Every file below `/docs/clients`, by name. Raises LookupError."""
    version = read_version()
    files = dict([_build_wheel()])
    for archive in ARCHIVES:
        files[archive.name.format(version=version)] = _pack(archive, version)
    for name, path in PROGRAMS.items():
        files[name] = clean(read(path)).encode()
    files[SUMS] = "".join(f"{hash_of(data)}  {name}\n" for name, data in sorted(files.items())).encode()
    return files


@cache
def packages() -> Mapping[str, bytes]:
    """What `make_packages` made, once."""
    return make_packages()


def hash_of(data: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def clean(program: str) -> str:
    """A program without the marks at which pages cut it."""
    return re.sub(r"^[^\n]*docs:(?:begin|end)[^\n]*\n", "", program, flags=re.M)


def check_names(text: str, page: str) -> None:
    """Raise LookupError if a page names a file below `/docs/clients` that is not handed out."""
    for name in _URL.findall(text):
        if name not in packages():
            raise LookupError(
                f"{page} names /docs/clients/{name}, which is not made: there are {', '.join(packages())}"
            )


def read_version() -> str:
    """The version of all clients. Raises LookupError if they differ."""
    php, npm = (json.loads(read(f"clients/{name}.json")) for name in ("php/composer", "typescript/package"))
    java = re.search(
        r"<artifactId>merchant-wallet-client</artifactId>\s*<version>(.*?)<", read("clients/java/pom.xml")
    )
    versions = {
        "client/pyproject.toml": tomllib.loads(read("client/pyproject.toml"))["project"]["version"],
        "clients/php/composer.json": php["version"],
        "clients/typescript/package.json": npm["version"],
        "clients/java/pom.xml": java[1] if java else None,
    }
    if len(set(versions.values())) != 1:
        raise LookupError(f"all clients must have one version: {versions}")
    return str(versions["client/pyproject.toml"])


def _build_wheel() -> tuple[str, bytes]:
    """The Python client's wheel: its name and its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
            cwd=ROOT / "client",
            env={"SOURCE_DATE_EPOCH": "0", **os.environ},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LookupError(f"the wheel of client/ can't be built:\n{done.stderr}")
        [wheel] = Path(folder).glob("*.whl")
        return wheel.name, wheel.read_bytes()


def _pack(archive: Archive, version: str) -> bytes:
    folder = ROOT / archive.folder
    found = {
        pattern: [path for path in folder.glob(pattern) if path.is_file()] for pattern in archive.patterns
    }
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        raise LookupError(f"{archive.folder} has no {', '.join(missing)}: its archive would lack them")
    paths = sorted({path for paths in found.values() for path in paths})
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0, filename="") as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in paths:
            if not path.name.endswith("_test.go"):
                _add(
                    tar, f"{archive.top.format(version=version)}/{path.relative_to(folder).as_posix()}", path
                )
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    data = path.read_bytes()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    # Before 1980 some unpackers complain.
    entry.mtime = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315_532_800)
    tar.addfile(entry, io.BytesIO(data))
