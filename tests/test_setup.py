"""`scripts/setup`: which Python it uses for a new .venv, that an existing .venv stays, what it refuses."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripts.build_release import build
from tests.tools import require_tool

from merchant_wallet.processes.python_build import can_make_venv, is_optimised, runs_optimised

ROOT = Path(__file__).parents[1]
PARTS = ("scripts/setup", "src/merchant_wallet/processes/python_build.py", "scripts/certificates")
BASH = shutil.which("bash") or "bash"
PLAIN = "'--prefix=/home/w/.pyenv/versions/3.11.7' '--enable-shared'"
LIBRARY = "7f35e7c58000-7f35e7c5a000 r-xp 00000000 fe:00 7 /usr/lib/libpython3.11.so.1.0\n"
EXECUTABLE = "00400000-00a00000 r-xp 00000000 fe:00 7 /usr/bin/python3.11\n"

FORMER_OPTIONS = (
    "--browser",
    "--clients",
    "--patroni",
    "--postgres",
    "--postgres16",
    "--prometheus",
    "--proxies",
    "--s3",
)
GOOD, PLAINLY_BUILT, UNSUPPORTED = "good", "plainly built", "unsupported"
STATUSES = {GOOD: (0, 0), PLAINLY_BUILT: (0, 1), UNSUPPORTED: (1, 0)}
"""Exit statuses of a Python when asked whether it is supported, and whether it would make a good .venv."""


def install(folder: Path, **pythons: str) -> Path:
    """A folder of the path with Pythons of these kinds; `python3_12` is `python3.12`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind in pythons.items():
        version, build = STATUSES[kind]
        write(
            folder / name.replace("_", "."),
            f'case "$1" in -c) exit {version} ;; -I) exit {build} ;; *) echo Python 3.9.2 ;; esac',
        )
    return folder


def write(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that `scripts/setup` needs, in a folder whose name has a space."""
    folder = tmp_path / "merchant wallet"
    for part in PARTS:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, folder / part)
    return folder


def run_setup(
    clone: Path, path: Sequence[Path], *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run it with only these folders in the path, and no other variables."""
    return subprocess.run(
        [BASH, "scripts/setup", *options],
        cwd=clone,
        env={"PATH": ":".join(map(str, path)), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def pick(clone: Path, *path: Path) -> str:
    """The Python that it would choose from these folders."""
    tools = clone.parent / "tools"
    tools.mkdir()
    found = shutil.which("dirname")
    assert found is not None
    (tools / "dirname").symlink_to(found)
    done = run_setup(clone, [*path, tools], "--python")
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n")


def test_an_optimised_python_behind_a_shim_is_preferred(clone: Path) -> None:
    shims = install(clone.parent / "the shims", python3=PLAINLY_BUILT, python3_12=PLAINLY_BUILT)
    system = install(clone.parent / "usr bin", python3=GOOD)
    assert pick(clone, shims, system) == str(system / "python3")


def test_where_none_is_optimised_the_first_that_is_supported_is_taken(clone: Path) -> None:
    shims = install(clone.parent / "shims", python3=UNSUPPORTED, python3_12=PLAINLY_BUILT)
    system = install(clone.parent / "usr bin", python3=PLAINLY_BUILT, python3_11=PLAINLY_BUILT)
    assert pick(clone, shims, system) == str(shims / "python3.12")


def test_an_optimised_python_that_stands_first_is_taken_at_once(clone: Path) -> None:
    first = install(clone.parent / "first", python3=GOOD)
    second = install(clone.parent / "second", python3=GOOD, python3_13=GOOD)
    assert pick(clone, first, second) == str(first / "python3")


def test_one_that_is_not_supported_is_not_taken_however_well_it_was_built(clone: Path) -> None:
    old = install(clone.parent / "old", python3=UNSUPPORTED)
    new = install(clone.parent / "new", python3=PLAINLY_BUILT)
    assert pick(clone, old, new) == str(new / "python3")


def test_without_any_it_says_what_is_needed_and_what_there_is(clone: Path) -> None:
    tools = install(clone.parent / "tools", python3=UNSUPPORTED)
    write(tools / "dirname", 'echo "${1%/*}"')
    done = run_setup(clone, [tools], "--python")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Python 3.11, 3.12 or 3.13 is needed. What 'python3' is here: Python 3.9.2" in done.stderr


def test_a_real_python_is_asked_and_taken(clone: Path) -> None:
    here = clone.parent / "here"
    here.mkdir()
    (here / "python3").symlink_to(Path(sys.executable).resolve())
    assert pick(clone, here) == str(here / "python3")


def test_a_python_without_wheels_is_refused_by_set_up_and_by_the_package(clone: Path) -> None:
    newer = require_tool("python-3.14")
    here = install(clone.parent / "here")
    write(here / "python3", f'exec "{newer}" "$@"')
    write(here / "dirname", 'echo "${1%/*}"')
    done = run_setup(clone, [here], "--python")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Python 3.11, 3.12 or 3.13 is needed. What 'python3' is here: Python 3.14." in done.stderr
    build(ROOT, clone / "dist", 0, kinds=("wheel",))
    [wheel] = (clone / "dist").glob("*.whl")
    # uv ignores the upper bound. There the build of coincurve fails.
    subprocess.run([newer, "-m", "venv", clone / "venv"], check=True)
    pip = (clone / "venv/bin/python", "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index")
    tried = subprocess.run([*pip, wheel], capture_output=True, text=True, timeout=60, check=False)
    assert tried.returncode == 1
    assert "requires a different Python: 3.14." in tried.stderr


SYSTEM = (Path("/usr/bin"), Path("/bin"))
VARIABLES = ("SSL_CERT_FILE", "UV_SYSTEM_CERTS", "PIP_CERT", "NODE_EXTRA_CA_CERTS")


@pytest.fixture
def venv(clone: Path) -> Path:
    """A .venv of other locks, whose programs note what they are asked and which certificates they get."""
    shown = " ".join(f"{name}=${name}" for name in VARIABLES)
    for program in ("python", "uv"):
        write(clone / ".venv/bin" / program, f'echo "{program} $* {shown}" >>asked')
    (clone / ".venv/.set-up").write_text("made of other locks")
    (clone / ".venv/.folder").write_text(f"{clone}\n")
    for name in ("uv", "dev", "runtime", "build"):
        write(clone / f"requirements/{name}.txt", "wallet==1")
    return clone / ".venv"


def read_asked(clone: Path) -> list[str]:
    """What the programs of .venv were asked to install, since the last call."""
    lines = (clone / "asked").read_text().splitlines()
    (clone / "asked").write_text("")
    return [line for line in lines if "install" in line]


def test_a_venv_that_is_there_is_renewed_with_the_python_it_has(clone: Path, venv: Path) -> None:
    path = install(clone.parent / "path", python3=GOOD)
    done = run_setup(clone, [path, *SYSTEM])
    assert done.returncode == 0, done.stderr
    assert "making .venv" not in done.stderr
    assert "setup: installing 2 packages into .venv\n" in done.stderr
    asked = "".join(read_asked(clone))
    assert "--require-hashes -rrequirements/uv.txt -rrequirements/dev.txt" in asked
    assert "-m venv" not in asked


def test_the_runtime_alone_has_no_tools_and_the_rest_is_added_once(clone: Path, venv: Path) -> None:
    first = run_setup(clone, SYSTEM, "--runtime")
    assert first.returncode == 0, first.stderr
    locked, editable = read_asked(clone)
    assert "--require-hashes -rrequirements/runtime.txt -rrequirements/build.txt" in locked
    assert "--no-deps --no-build-isolation --editable . --editable client" in editable
    run_setup(clone, SYSTEM, "--runtime")
    assert read_asked(clone) == []
    run_setup(clone, SYSTEM)
    assert any("-rrequirements/dev.txt" in line for line in read_asked(clone))
    for option in ((), ("--runtime",)):
        run_setup(clone, SYSTEM, *option)
        assert read_asked(clone) == []


def test_pip_uv_and_npm_trust_the_certificates_that_the_caller_names_once(clone: Path, venv: Path) -> None:
    bundle = str(clone.parent / "company ca.pem")
    write(Path(bundle), "a certificate")
    run_setup(clone, SYSTEM, SSL_CERT_FILE=bundle)
    named = f"SSL_CERT_FILE={bundle} UV_SYSTEM_CERTS=1 PIP_CERT={bundle} NODE_EXTRA_CA_CERTS={bundle}"
    asked = read_asked(clone)
    assert any(line.startswith("python -m devnet --install") for line in asked)
    assert all(line.endswith(named) for line in asked)


def test_what_the_caller_set_for_one_client_stays(clone: Path, venv: Path) -> None:
    own = {"UV_SYSTEM_CERTS": "0", "PIP_CERT": "/pip.pem", "NODE_EXTRA_CA_CERTS": "/node.pem"}
    run_setup(clone, SYSTEM, **own)
    kept = "UV_SYSTEM_CERTS=0 PIP_CERT=/pip.pem NODE_EXTRA_CA_CERTS=/node.pem"
    assert all(line.endswith(kept) for line in read_asked(clone))


def test_a_python_without_venv_is_named_with_the_package_and_nothing_is_installed(clone: Path) -> None:
    """Also for root: set-up changes nothing outside the clone."""
    path = clone.parent / "path"
    write(path / "python3", 'case "$2" in *ensurepip*) exit 1 ;; *print*) echo 3.11 ;; esac')
    write(path / "id", "echo 0")
    write(path / "apt-get", 'echo "$*" >>asked')
    done = run_setup(clone, [path, Path("/usr/bin"), Path("/bin")])
    assert done.returncode == 1
    advice = "On Debian or Ubuntu type: sudo apt-get install python3.11-venv"
    assert done.stderr == f"setup: this Python comes without venv. {advice}\n"
    assert not (clone / "asked").exists()
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("option", FORMER_OPTIONS)
def test_a_former_option_names_the_command_that_replaces_it(clone: Path, option: str) -> None:
    done = run_setup(clone, [Path("/usr/bin"), Path("/bin")], option)
    assert done.returncode == 2
    assert done.stderr == (
        f"setup: there is no option {option} any more: sudo make test-tools installs the tools of the tests\n"
    )


@pytest.mark.parametrize(
    ("variables", "loaded", "optimised"),
    [
        ({"CONFIG_ARGS": PLAIN, "Py_ENABLE_SHARED": 1}, LIBRARY, False),
        ({"CONFIG_ARGS": "'--with-lto'", "Py_ENABLE_SHARED": 0}, EXECUTABLE, False),
        ({"CONFIG_ARGS": None, "Py_ENABLE_SHARED": None}, EXECUTABLE, False),
        ({"CONFIG_ARGS": f"{PLAIN} '--enable-optimizations'", "Py_ENABLE_SHARED": 1}, LIBRARY, True),
        ({"PY_CFLAGS_NODIST": "-O3 -fprofile-use -fprofile-correction"}, EXECUTABLE, True),
        ({"PY_CORE_CFLAGS": "-O3 -fprofile-instr-use=code.profclangd"}, EXECUTABLE, True),
        # Only the shared library that Debian describes was built without optimisation.
        ({"CONFIG_ARGS": "'--enable-shared' '--prefix=/usr'", "Py_ENABLE_SHARED": 1}, EXECUTABLE, True),
    ],
)
def test_what_a_build_says_of_itself_is_understood(
    variables: dict[str, object], loaded: str, optimised: bool
) -> None:
    assert is_optimised(variables, loaded) is optimised


def test_the_file_alone_says_to_setup_what_the_package_says() -> None:
    done = subprocess.run(
        [sys.executable, "-I", ROOT / PARTS[1]], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode == 0) is (runs_optimised() and can_make_venv())
    assert done.stderr == b""
