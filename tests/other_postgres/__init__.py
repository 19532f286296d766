"""Other versions of PostgreSQL than the wheel's, for tests.

Rules:
- `pytest --postgres-bin FOLDER` starts the shared server and clusters with the programs in that folder.
- Tests of the service's own PostgreSQL always use the wheel.
- Version 15 is Debian's package, installed or unpacked into build/tools. Versions 16 and 17 are npm packages,
  pinned by package-lock.json.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from devnet.programs import install
from tests.tools import Finder

from merchant_wallet.postgres import cluster, programs, server
from merchant_wallet.postgres.data_folder import DataFolder
from merchant_wallet.postgres.programs import Programs

FOLDER: Final = Path(__file__).parent
DEBIAN: Final = Path("/usr/lib/postgresql")
UNPACKED: Final = Finder().folder / "bin"
FROM_DEBIAN: Final = (15,)
FROM_NPM: Final = (16, 17)
OLDEST: Final = 15
NEEDED: Final = ("initdb", "postgres")


class NoPrograms(Exception):
    """A folder does not have the programs of a PostgreSQL that works here. The text says why."""


class Choice:
    """The folder that `--postgres-bin` named. None is the wheel's."""

    folder: Path | None = None


def choose_programs(folder: DataFolder) -> Programs:
    """The chosen programs. They run as the same user as the wheel's."""
    found = programs.choose_programs(folder)
    return replace(found, path=Choice.folder) if Choice.folder else found


def replace_wheel(folder: Path) -> None:
    """Let `postgres.start` of this program use other programs. Versions 15 and 16 lack the builtin locale."""
    Choice.folder = folder
    vars(server)["choose_programs"] = choose_programs
    options = [option for option in cluster.INITDB if "locale" not in option]
    vars(cluster)["INITDB"] = (*options, "--locale=C.UTF-8")


def read_version(folder: Path) -> int:
    """The major version of the programs in a folder. Raises NoPrograms."""
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        raise NoPrograms(f"{folder} has no {' and no '.join(missing)}")
    tried = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
    words = tried.stdout.split()
    if tried.returncode or words[:2] != ["postgres", "(PostgreSQL)"]:
        raise NoPrograms(f"{folder / 'postgres'} does not start: {tried.stderr.strip()}")
    version = int(words[2].split(".")[0])
    if version < OLDEST:
        raise NoPrograms(f"{folder} has PostgreSQL {version}. Version {OLDEST} or newer is needed")
    return version


def find_programs(version: int) -> Path:
    """The folder of one version's programs. Raises NoPrograms if they are not installed or do not work."""
    folder = _find_debian(version) if version in FROM_DEBIAN else _find_package(version) / "native/bin"
    if read_version(folder) != version:
        raise NoPrograms(f"{folder} has another version than {version}")
    return folder


def install_packages() -> None:
    """Install the npm packages. Raises ProgramMissing."""
    install(FOLDER)
    for version in FROM_NPM:
        _link_libraries(_find_package(version))


def _find_debian(version: int) -> Path:
    unpacked = UNPACKED / f"postgresql-{version}"
    return unpacked if unpacked.exists() else DEBIAN / str(version) / "bin"


def _find_package(version: int) -> Path:
    return FOLDER / f"node_modules/postgres-{version}"


def _link_libraries(package: Path) -> None:
    """Create the package's symbolic links: npm packages can't contain any. No script of a package is run."""
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        target = package / link["target"]
        target.unlink(missing_ok=True)
        target.symlink_to(Path(link["source"]).name)
