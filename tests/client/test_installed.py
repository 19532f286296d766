"""The client's wheel in an environment that has nothing of the service, against a running service.

It runs on the oldest and the newest Python that the client supports.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from scripts.build_release import ROOT, build
from scripts.write_sbom import CLIENT_LOCK
from tests.journeys.conftest import Platform, Shop
from tests.tools import require_tool
from tests.waits import TIMEOUT_S

EPOCH = 1_700_000_000
PYTHONS = ("3.11", "3.14")
WORKING = True


@pytest.fixture(scope="module", params=PYTHONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a virtual environment with the wheel and the packages of its lock."""
    python = require_tool(f"python-{request.param}")
    folder = tmp_path_factory.mktemp("installed")
    build(ROOT / "client", folder / "dist", EPOCH, kinds=("wheel",))
    [wheel] = (folder / "dist").glob("*.whl")
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    tool = Path(sys.executable).with_name("uv")
    install = (tool, "pip", "install", "--quiet", "--python", folder / "venv")
    subprocess.run([*install, "--require-hashes", "-r", CLIENT_LOCK], check=True)
    subprocess.run([*install, "--no-deps", wheel], check=True)
    return folder / "venv" / "bin"


@pytest.fixture
def keys(platform: Platform) -> Mapping[str, str]:
    """The environment of a merchant's engineer, and nothing else."""
    shop: Shop = platform.open_merchant()
    shop.fund("USDT", "1000")
    shop.fund("KFB", "1000")
    return {
        "PATH": "/usr/bin:/bin",
        "MERCHANT_WALLET_URL": f"http://127.0.0.1:{platform.port}",
        "MERCHANT_WALLET_APP_KEY": shop.client.app_key,
        "MERCHANT_WALLET_SECRET": shop.client.secret,
        "MERCHANT_WALLET_CALLBACK_SECRET": shop.callback_secret,
    }


def run(program: Path, *words: str, env: Mapping[str, str], status: int = 0) -> str:
    done = subprocess.run(
        [program, *words], env=dict(env), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_the_installed_client_calls_and_explains_without_the_service(
    installed: Path, keys: Mapping[str, str]
) -> None:
    alone = "import importlib.util as u; print(u.find_spec('merchant_wallet'), u.find_spec('psycopg'))"
    assert run(installed / "python", "-c", alone, env=keys) == "None None\n"
    program = installed / "merchant-wallet-client"
    assert json.loads(run(program, "call", "getMerchantBalance", env=keys))["data"]["usdtBalance"] == 1000
    refused = run(program, "call", "queryOrder", "orderId=1", "mcOrderId=1", env=keys, status=1)
    assert json.loads(refused)["code"] == 40401
    assert json.loads(run(program, "explain", "40401", env=keys))["name"] == "ORDER_NOT_FOUND"


def test_the_installed_client_runs_the_quick_start(installed: Path, keys: Mapping[str, str]) -> None:
    said = run(installed / "python", str(ROOT / "client" / "examples" / "quickstart.py"), env=keys)
    assert said.splitlines()[0] == "payment: 40.5 KFB arrived"
    assert "has status 2, transaction " in said


def test_without_the_extra_the_command_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('typer')\n")
    done = subprocess.run(
        [installed / "python", "-c", "from merchant_wallet_client.cli import main; main()"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The command line needs one more package: pip install typer")
