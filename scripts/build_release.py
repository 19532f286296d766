"""Build what a release consists of: `make release` runs this as `python -m scripts.build_release`.

dist/ then has the wheel, the sdist, `constraints.txt` (the locked versions, for pip, pipx and uv tool),
`requirements.txt` (the lock with hashes, and both wheels), the bill of materials and SHA256SUMS. The Python
client has a wheel, an sdist, constraints and a bill of materials of its own, whose names have `client`.

Rules:
- Only what is committed is built. The changelog must begin with the version of `pyproject.toml`, and the
  client has the same version.
- The same commit gives the same bytes. So everything is built twice, in folders of different names and under
  different clocks, languages and file masks. The wheel is also built from the sdist.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.write_sbom import CLIENT, CLIENT_LOCK, EXTRAS_LOCK, RUNTIME_LOCK, list_pins, make_document

ROOT: Final = Path(__file__).parents[1]
TARGET: Final = ROOT / "dist"
CLIENT_FOLDER: Final = "client"
PACKED: Final = "src/merchant_wallet/web/documentation.zip"
"""The documentation site in the package."""
PLACES: Final = (
    ("first", {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}, 0o022),
    ("second/with a space", {"TZ": "Asia/Shanghai", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}, 0o077),
)
"""Two folders to build in, with what must not show in the bytes."""


class NoRelease(Exception):
    """Why nothing was released."""


def main() -> None:
    """Build into dist/ and print what is there."""
    try:
        release(TARGET)
    except NoRelease as error:
        sys.exit(f"make release: {error}")
    for path in sorted(TARGET.iterdir()):
        print(f"{path.stat().st_size:>10}  dist/{path.name}")


def release(target: Path) -> None:
    """Build the last commit into a new folder `target`. Raises NoRelease."""
    if changed := _git("status", "--porcelain"):
        raise NoRelease(f"commit first. These files differ from the last commit:\n{changed}")
    epoch = int(_git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary) / "tree.tar"
        _git("archive", "--output", str(archive), "HEAD")
        tree = _unpack(archive, Path(temporary) / "tree")
        check_changelog((tree / "CHANGELOG.md").read_text(encoding="utf-8"), read_version(tree))
        check_client(tree)
        built = build_twice(tree, Path(temporary), epoch)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(built, target)
    write_companions(target)


def read_version(tree: Path) -> str:
    """The version that `pyproject.toml` names."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def check_changelog(text: str, version: str) -> None:
    """Raise NoRelease unless the newest heading of the changelog is about this version."""
    newest = next((line for line in text.splitlines() if line.startswith("## ")), "")
    if version not in newest.replace("(", " ").replace(")", " ").split():
        raise NoRelease(
            f"CHANGELOG.md begins with '{newest}' and pyproject.toml says {version}: correct one of them"
        )


def check_client(tree: Path) -> None:
    """Raise NoRelease unless the client has the version of the service."""
    ours, clients = read_version(tree), read_version(tree / CLIENT_FOLDER)
    if ours != clients:
        raise NoRelease(
            f"client/pyproject.toml says {clients} and pyproject.toml says {ours}: make them equal"
        )


def build_twice(tree: Path, work: Path, epoch: int) -> Path:
    """Build in both places, and the wheels from the sdists. Returns the first result. Raises NoRelease."""
    results = []
    for name, environment, mask in PLACES:
        copy, result = work / name / "tree", work / name / "dist"
        shutil.copytree(tree, copy)
        build(copy, result, epoch, environment, mask)
        build(copy / CLIENT_FOLDER, result, epoch, environment, mask)
        results.append(result)
    for number, sdist in enumerate(sorted(results[0].glob("*.tar.gz"))):
        unpacked = _unpack(sdist, work / f"from sdist {number}")
        build(next(unpacked.iterdir()), work / "third", epoch, kinds=("wheel",))
    for other in (results[1], work / "third"):
        compare(results[0], other)
    return results[0]


def build(
    tree: Path,
    result: Path,
    epoch: int,
    environment: Mapping[str, str] | None = None,
    mask: int = -1,
    kinds: tuple[str, ...] = ("wheel", "sdist"),
) -> None:
    """Build the sources of a folder into `result`, with the tools of this environment. Raises NoRelease."""
    targets = [word for kind in kinds for word in ("--target", kind)]
    # An sdist has the documentation site already, and the client has none.
    has_site = (tree / "scripts" / "site").exists() and not (tree / PACKED).exists()
    steps = [["scripts.site"]] if has_site else []
    for step in (*steps, ["hatchling", "build", *targets, "--directory", str(result)]):
        done = subprocess.run(
            [sys.executable, "-m", *step],
            cwd=tree,
            env={
                **os.environ,
                **(environment or {}),
                "SOURCE_DATE_EPOCH": str(epoch),
                "PYTHONPATH": str(tree / "src"),
            },
            umask=mask,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NoRelease(f"the build failed:\n{done.stderr}")


def compare(one: Path, other: Path) -> None:
    """Raise NoRelease if a file of `other` has other bytes in `one`."""
    for path in sorted(other.iterdir()):
        if path.read_bytes() != (one / path.name).read_bytes():
            raise NoRelease(
                f"{path.name} has other bytes when it is built again. Compare with diffoscope: {path}"
            )


def write_companions(target: Path) -> None:
    """Write what lies beside wheel and sdist: constraints, requirements, bill of materials, check sums."""
    lock = RUNTIME_LOCK.read_text(encoding="utf-8")
    for name, extras in (("constraints.txt", EXTRAS_LOCK), ("client-constraints.txt", CLIENT_LOCK)):
        pins = list_pins(extras.read_text(encoding="utf-8"))
        (target / name).write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    # The client needs nothing that the server does not need, and gives it the commands for integrators.
    wheels = [f"./{path.name} \\\n    --hash=sha256:{_hash(path)}\n" for path in sorted(target.glob("*.whl"))]
    (target / "requirements.txt").write_text(lock + "".join(wheels), encoding="utf-8")
    (target / "sbom.cdx.json").write_text(make_document(), encoding="utf-8")
    (target / "client-sbom.cdx.json").write_text(make_document(CLIENT), encoding="utf-8")
    sums = [f"{_hash(path)}  {path.name}\n" for path in sorted(target.iterdir())]
    (target / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def _unpack(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["tar", "-x", "-f", str(archive), "-C", str(folder)], check=True)
    return folder


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoRelease(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
