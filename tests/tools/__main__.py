"""`python -m tests.tools` installs the tools of the tests that are missing, and says what stays missing.

`scripts/test_tools`, which is `make test-tools`, calls it with the system's Python.

Rules:
- Root on Debian installs everything. Under sudo only apt-get runs as root, so the clone stays the caller's.
- An ordinary user gets what needs no root, and the line to type for the rest.
- Exit status 1 if .venv can't be made, and with `CI=true` if a tool is missing.
"""

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.tools import COMMAND, FOLDER, ROOT, TOOLS, Commands, Finder, LocalPackages, SystemPackages, Tool
from tests.tools.debian import AptFailed, install, run_apt, unpack, write_wrapper

FAILED: Final = 1


def say(text: str) -> None:
    """Print a line at once: what follows may take minutes."""
    print(f"test-tools: {text}", flush=True)


def main() -> int:
    """Install what is missing. Returns the exit status."""
    finder = Finder()
    missing = [tool for tool in TOOLS if finder.find(tool) is None]
    before = {tool.name for tool in TOOLS} - {tool.name for tool in missing}
    if os.geteuid() == 0:
        install_packages(missing)
    become_caller()
    if subprocess.run([ROOT / "scripts/setup"], check=False).returncode:
        return FAILED
    unpack_packages(finder, [tool for tool in missing if isinstance(tool.source, LocalPackages)])
    build(finder, missing)
    return report(finder, before)


def install_packages(missing: Sequence[Tool]) -> None:
    """As root: renew apt-get's lists, and install the packages that register nothing."""
    if all(isinstance(tool.source, Commands) for tool in missing):
        return
    packages = list_system_packages(missing)
    try:
        run_apt("update", "-q")
    except AptFailed as error:
        # Lists of yesterday may do.
        say(f"apt-get update: {error}")
    if packages:
        say(f"apt-get install {' '.join(packages)}")
        try:
            install(packages)
        except AptFailed as error:
            say(f"apt-get install: {error}")


def list_system_packages(tools: Sequence[Tool]) -> list[str]:
    """The packages of these tools that apt-get installs."""
    return [
        name for tool in tools if isinstance(tool.source, SystemPackages) for name in tool.source.packages
    ]


def become_caller() -> None:
    """Under sudo, go on as the user who typed it."""
    caller = os.environ.get("SUDO_UID")
    if os.geteuid() != 0 or caller is None:
        return
    account = pwd.getpwuid(int(caller))
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    os.environ["HOME"] = account.pw_dir


def unpack_packages(finder: Finder, tools: Sequence[Tool]) -> None:
    """Unpack what is missing at once. If that fails, one after the other: some of it may be had."""
    sources = [tool.source for tool in tools if isinstance(tool.source, LocalPackages)]
    if not sources:
        return
    say(f"unpacking into {FOLDER}: {' '.join(name for source in sources for name in source.packages)}")
    try:
        unpack(finder, sources)
    except AptFailed as error:
        say(f"apt-get: {error}")
        for source in sources if len(sources) > 1 else ():
            try:
                unpack(finder, [source])
            except AptFailed as failure:
                say(f"{source.packages[0]}: {failure}")


def build(finder: Finder, tools: Sequence[Tool]) -> None:
    """Install what comes from PyPI, npm and Go. A command that several tools share is run once."""
    results: dict[tuple[str, ...], bool] = {}
    for tool in tools:
        if not isinstance(tool.source, Commands):
            continue
        if any(command not in results for command in tool.source.commands):
            say(f"installing {tool.name}")
        for command in tool.source.commands:
            if command not in results:
                results[command] = run_command(finder, command)
            if not results[command]:
                break
        for name, pattern in tool.source.programs.items():
            for file in finder.root.glob(pattern):
                write_wrapper(finder, name, file, {})


def run_command(finder: Finder, command: Sequence[str]) -> bool:
    """Run a command in the clone. If it fails, print why and return False."""
    environment = {**os.environ, "PATH": finder.search_path}
    try:
        done = subprocess.run(
            command, cwd=finder.root, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        say(str(error))
        return False
    if done.returncode:
        output = (done.stderr + done.stdout).strip() or f"exit status {done.returncode}"
        say(f"{Path(command[0]).name}: {output.splitlines()[-1]}")
    return done.returncode == 0


def report(finder: Finder, before: set[str]) -> int:
    """Print one line for each tool. Returns the exit status."""
    missing = []
    for tool in TOOLS:
        found = finder.find(tool)
        if found is None:
            missing.append(tool)
            print(f"{tool.name}: MISSING. Left out: {tool.use}")
        else:
            status = "there" if tool.name in before else "installed"
            print(f"{tool.name}: {status} ({_shorten(finder, found)})")
    if not missing:
        say("every tool is there")
        return 0
    say(f"MISSING: {', '.join(tool.name for tool in missing)}")
    if os.geteuid() != 0:
        _advise(missing)
    return FAILED if os.environ.get("CI") == "true" else 0


def _advise(missing: Sequence[Tool]) -> None:
    packages = list_system_packages(missing)
    if packages:
        say(f"on Debian type: sudo apt-get install --no-install-recommends {' '.join(packages)}")
    else:
        say(f"on Debian type: {COMMAND}")


def _shorten(finder: Finder, program: Path) -> Path:
    return program.relative_to(finder.root) if program.is_relative_to(finder.root) else program


if __name__ == "__main__":
    sys.exit(main())
