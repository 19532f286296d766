"""The collections run in the command lines of Postman (newman) and Bruno against a running service."""

import subprocess
from pathlib import Path

import pytest
from scripts.documents.collection_files import BRUNO, ORDER, POSTMAN
from tests.journeys import conftest as journeys
from tests.journeys.conftest import Shop
from tests.tools import require_tool

from devnet import programs

SETTINGS = {"trusted_proxies": ()}
FOLDER = Path(__file__).parent
TIMEOUT_S = 240

clock, platform, own_platform, shop = journeys.clock, journeys.platform, journeys.own_platform, journeys.shop


@pytest.fixture(scope="module")
def bin_folder() -> Path:
    """The folder of the two programs, as package-lock.json has them."""
    require_tool("newman")
    # It may be that the packages are those of an older package-lock.json.
    programs.install(FOLDER)
    return FOLDER / "node_modules" / ".bin"


def run(words: list[str | Path], folder: Path) -> str:
    done = subprocess.run(
        [str(programs.find_node()), *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def judge(said: str) -> None:
    """Every operation succeeded, and each answer's signature was checked."""
    for operation in ORDER:
        assert f"/merchant/{operation}: 200 success" in said
    assert said.count("the answer is signed with the secret") == len(ORDER)


def give_rates(shop: Shop) -> None:
    shop.set_rate("KFB:USDT", "0.14")
    shop.set_rate("USDT:KFB", "7.1")


@pytest.mark.extended
def test_postmans_collection_runs_and_every_answer_is_signed(shop: Shop, bin_folder: Path) -> None:
    give_rates(shop)
    client = shop.client
    told = {"baseUrl": shop.platform.address, "appKey": client.app_key, "secret": client.secret}
    words: list[str | Path] = [bin_folder / "newman", "run", POSTMAN, "--color", "off"]
    for name, value in told.items():
        words += ["--env-var", f"{name}={value}"]
    judge(run(words, FOLDER))


@pytest.mark.extended
@pytest.mark.parametrize("sandbox", ["safe", "developer"])
def test_brunos_collection_runs_and_every_answer_is_signed(
    shop: Shop, bin_folder: Path, sandbox: str
) -> None:
    give_rates(shop)
    client = shop.client
    told = {"baseUrl": shop.platform.address, "appKey": client.app_key, "secret": client.secret}
    words: list[str | Path] = [bin_folder / "bru", "run", "--env", "sandbox", "--sandbox", sandbox]
    for name, value in told.items():
        words += ["--env-var", f"{name}={value}"]
    judge(run(words, BRUNO))
