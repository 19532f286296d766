"""A production installation has only the program and its runtime packages; the bill of materials lists
them.
"""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.write_sbom import RUNTIME_LOCK, make_document, read_lock
from tests.waits import TIMEOUT_S

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"colorama"}
"""Packages of the lock for other platforms."""
LOCKED = list(read_lock(RUNTIME_LOCK.read_text()))
LENDING_PYTHON = """#!/bin/sh
# To load the tools once more would take longer than all the rest. This Python lends the clone's own.
case "$1 $2 $#" in
    "-m venv 3") mkdir -p "$3/bin" && ln -s "{own}/uv" "$3/bin/uv" && ln -s "$0" "$3/bin/python" ;;
    "-m pip "*) ;;
    *) exec "{own}/python" "$@" ;;
esac
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The result of `make install` in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("production") / "merchant wallet"
    subprocess.run([ROOT / "scripts" / "install", folder], check=True, timeout=300)
    yield folder
    shutil.rmtree(folder)


def test_production_has_the_runtime_packages_and_no_tools(installed: Path) -> None:
    found = {
        re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower()
        for path in installed.glob("lib/python3*/site-packages/*.dist-info")
    }
    assert found == {name for name, _, _ in LOCKED} - ELSEWHERE | {
        "merchant-wallet",
        "merchant-wallet-client",
    }
    assert not list(installed.glob("**/node_modules"))
    assert not (installed / "bin" / "pip").exists()


def test_the_installed_program_has_the_commands_of_the_client(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed / "bin" / "merchant-wallet", "explain", "42200"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert json.loads(done.stdout)["code"] == 42200


def test_the_installed_program_runs_without_the_clone(installed: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    running = subprocess.Popen(
        [installed / "bin" / "merchant-wallet", "up", "--data", data],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "WALLET_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line.strip())
            if line.startswith("mode: "):
                break
        assert said[-2].startswith("ready: http://127.0.0.1:")
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(TIMEOUT_S) == 0
        assert running.stdout is not None
        running.stdout.close()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("to somebody")
    done = subprocess.run(
        [ROOT / "scripts" / "install", tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "is not empty and holds no installation" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


@pytest.mark.parametrize("program", ["", "bin/merchant-wallet"])
def test_another_virtual_environment_is_left_alone(tmp_path: Path, program: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True, timeout=60)
    # A developer's environment has pip. To install it here would take seconds.
    for name in filter(None, ("bin/pip", program)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [ROOT / "scripts" / "install", tmp_path], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "is not empty and holds no installation" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_the_clones_own_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "install", tmp_path / "scripts")
    program = tmp_path / ".venv" / "bin" / "merchant-wallet"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = subprocess.run(
        [tmp_path / "scripts" / "install", tmp_path / ".venv"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "is not empty and holds no installation" in done.stderr
    assert program.exists()


def test_an_installation_is_brought_up_to_date(installed: Path, tmp_path: Path) -> None:
    unneeded = next(installed.glob("lib/python3*/site-packages")) / "unneeded-1.0.dist-info"
    unneeded.mkdir()
    (unneeded / "METADATA").write_text("Metadata-Version: 2.1\nName: unneeded\nVersion: 1.0\n")
    (unneeded / "RECORD").write_text(f"{unneeded.name}/METADATA,,\n{unneeded.name}/RECORD,,\n")
    program = installed / "bin" / "merchant-wallet"
    program.write_text("#!/bin/sh\n")
    python = tmp_path / "python3"
    python.write_text(LENDING_PYTHON.format(own=Path(sys.executable).parent))
    python.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        [ROOT / "scripts" / "install", installed], env={**os.environ, "PATH": path}, check=True, timeout=300
    )
    assert not unneeded.exists()
    assert "merchant_wallet" in program.read_text()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not write")
def test_a_folder_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    done = subprocess.run(
        ["/bin/bash", "-s", "/root-only/merchant-wallet"],
        input=(ROOT / "scripts" / "install").read_text(),
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "can't be written: name another folder with PREFIX" in done.stderr


def test_the_bill_of_materials_names_every_locked_package_and_is_the_same_twice() -> None:
    text = make_document()
    assert text == make_document()
    document = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    named = {(each["name"], each["version"]): each for each in document["components"]}
    for name, version, sums in LOCKED:
        assert {each["content"] for each in named[name, version]["hashes"]} == set(sums)
        assert named[name, version]["purl"] == f"pkg:pypi/{name}@{version}"
    scripts = {name for name, _ in named} - {name for name, _, _ in LOCKED}
    assert scripts == {"htmx.org", "uplot"}
    unlicensed = {name for (name, _), each in named.items() if not each.get("licenses")}
    assert unlicensed <= ELSEWHERE
    known = {each["bom-ref"] for each in [*document["components"], document["metadata"]["component"]]}
    for line in document["dependencies"]:
        assert {line["ref"], *line.get("dependsOn", [])} <= known


def test_a_lock_is_read_with_markers_and_several_sums() -> None:
    first, second = "a" * 64, "b" * 64
    lock = (
        f"one==1.0 \\\n    --hash=sha256:{first} \\\n    --hash=sha256:{second}\n"
        f"two==2.1.post1 ; sys_platform == 'win32' \\\n    --hash=sha256:{first}\n"
    )
    assert list(read_lock(lock)) == [("one", "1.0", [first, second]), ("two", "2.1.post1", [first])]
