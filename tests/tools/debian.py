"""Debian packages for the tests: installed with apt-get, or unpacked into build/tools.

Rules:
- No script of an unpacked package is run: nothing is started, registered or changed outside the clone.
- Dependencies that are not installed are unpacked, too. The C library is never replaced.
- Each unpacked program has a wrapper in build/tools/bin, which says where its libraries and fonts are.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.tools import Finder, LocalPackages

OPTIONS: Final = ("-q", "-y", "--no-install-recommends")
C_LIBRARY: Final = {"libc6", "libc-bin", "libc-l10n", "locales"}
"""Its parts must match the running loader, which the unpacked programs share with the system."""
FONTS: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include>{root}/etc/fonts/fonts.conf</include>
  <dir>{root}/usr/share/fonts</dir>
</fontconfig>
"""
SHEBANG: Final = re.compile(rb"#! *(?:/usr/bin/env +)?(\S+)")


class AptFailed(Exception):
    """apt-get failed. The text is the end of what it printed."""


def run_apt(*words: str, folder: Path | None = None) -> str:
    """Run apt-get and return its output. Raises AptFailed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["apt-get", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise AptFailed("there is no apt-get here") from error
    if done.returncode:
        raise AptFailed("\n".join(done.stdout.strip().splitlines()[-5:]))
    return done.stdout


def install(packages: Sequence[str]) -> None:
    """Install packages. If one of them can't be had, install the others, then raise AptFailed."""
    try:
        run_apt("install", *OPTIONS, *packages)
        return
    except AptFailed as error:
        if len(packages) == 1:
            raise
        failures = [str(error)]
    for package in packages:
        try:
            run_apt("install", *OPTIONS, package)
        except AptFailed as error:
            failures.append(str(error))
    if len(failures) > 1:
        raise AptFailed(failures[-1])


def unpack(finder: Finder, sources: Sequence[LocalPackages]) -> None:
    """Download packages with the dependencies that are missing here, unpack them, and write the wrappers.

    Raises AptFailed.
    """
    root, packages = finder.folder / "root", finder.folder / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    try:
        run_apt("download", "-q", *_list_packages(sources), folder=packages)
        root.mkdir(exist_ok=True)
        for package in sorted(packages.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise AptFailed(str(error)) from error
    finally:
        shutil.rmtree(packages)
    _relink(root)
    _write_php_settings(finder.folder)
    _write_fonts(finder.folder)
    # fish looks for its files relative to its own folder only if all of them are there.
    if (root / "etc/fish").exists() and not (root / "usr/etc").exists():
        (root / "usr/etc").symlink_to("../etc")
    for source in sources:
        for name, pattern in source.programs.items():
            for file in root.glob(pattern):
                _wrap_all(finder, name, file)


def write_wrapper(finder: Finder, name: str, file: Path, environment: Mapping[str, str]) -> None:
    """Write a program into build/tools/bin that starts a file."""
    command = [str(file)]
    with file.open("rb") as opened:
        # The interpreter of a script may be in build/tools, too.
        if shebang := SHEBANG.match(opened.readline()):
            command.insert(0, Path(shebang[1].decode()).name)
    lines = ["#!/bin/sh", f"PATH={shlex.quote(str(finder.folder / 'bin'))}:$PATH"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines.append(f'exec {shlex.join(command)} "$@"')
    wrapper = finder.folder / "bin" / name
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text("\n".join(lines) + "\n")
    wrapper.chmod(0o755)


def _list_packages(sources: Iterable[LocalPackages]) -> list[str]:
    """The packages of the sources, and what apt-get would install or upgrade for them."""
    names = [name for source in sources for name in source.packages]
    simulated = run_apt("install", "--simulate", *OPTIONS, *names)
    planned = dict(re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", simulated, re.MULTILINE))
    chosen = {name: f"{name}={version}" for name, version in planned.items() if name not in C_LIBRARY}
    return [*chosen.values(), *(name for name in names if name not in chosen)]


def _relink(root: Path) -> None:
    """Make absolute links that lead to an unpacked file relative."""
    for link in _list_links(root):
        target = root / link.readlink().relative_to("/")
        if target.exists() or target.is_symlink():
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))


def _list_links(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and path.readlink().is_absolute():
                yield path


def _write_php_settings(folder: Path) -> None:
    """Turn on the unpacked extensions of PHP, in the order that the packages ask for."""
    lines = []
    for file in folder.glob("root/usr/share/php[0-9]*/*/*.ini"):
        text = file.read_text()
        priority = re.search(r"^; priority=(\d+)$", text, re.MULTILINE)
        for library in re.findall(r"^extension=(\S+)$", text, re.MULTILINE):
            for found in folder.glob(f"root/usr/lib/php/*/{library}"):
                lines.append((int(priority[1]) if priority else 20, f"extension={found}"))
    if lines or (folder / "root/usr/share/php").exists():
        settings = folder / "php.d" / "unpacked.ini"
        settings.parent.mkdir(exist_ok=True)
        path = f'include_path=".:{folder}/root/usr/share/php:/usr/share/php"'
        settings.write_text("\n".join([path, *(line for _, line in sorted(lines))]) + "\n")


def _write_fonts(folder: Path) -> None:
    if (folder / "root/etc/fonts/fonts.conf").exists():
        (folder / "fonts.conf").write_text(FONTS.format(root=folder / "root"))


def _wrap_all(finder: Finder, name: str, file: Path) -> None:
    programs = {name: file}
    if file.is_dir():
        programs = {f"{name}/{program.name}": program for program in file.iterdir()}
    for each, program in programs.items():
        if os.access(program, os.X_OK):
            write_wrapper(finder, each, program, _list_variables(finder.folder, program))


def _list_variables(folder: Path, program: Path) -> dict[str, str]:
    """The environment in which an unpacked program finds what was unpacked with it."""
    libraries = [program.parent]
    for libs in (*folder.glob("root/lib/*-linux-gnu*"), *folder.glob("root/usr/lib/*-linux-gnu*")):
        inner = sorted(path for path in libs.iterdir() if path.is_dir() and any(path.glob("lib*.so*")))
        libraries += [libs, *inner]
    variables = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    if (folder / "php.d").exists():
        # The colon stands for the folder that PHP was built with.
        variables["PHP_INI_SCAN_DIR"] = f":{folder / 'php.d'}"
    if (folder / "fonts.conf").exists():
        variables["FONTCONFIG_FILE"] = str(folder / "fonts.conf")
    return variables
