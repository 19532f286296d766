"""What the quick-start pages tell a reader to type takes a payment and pays out, in each language."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.deployment import Deployment, find_installed_program
from scripts.site.quickstart import CLIENTS, PARTS, Client
from scripts.site.texts import ROOT, read

LEFT_OUT = shutil.ignore_patterns("node_modules", "build", "dist", ".venv", "__pycache__", "vendor", "target")
NEEDS = {"python": "python3", "typescript": "npm", "php": "php", "go": "go", "java": "javac"}
TIMEOUT_S = 250

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.page)


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment that the quick start asks for, after the commands for a sandbox of one's own."""
    deployment = Deployment(find_installed_program())
    try:
        deployment.set({"WALLET_SANDBOX_CONFIRM_MS": "100"})
        url = deployment.start(0, lambda _: None)
        told: dict[str, str] = {}
        for line in read("docs/site/examples/own_sandbox.sh").splitlines():
            words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)[1:]]
            is_first = words[:2] == ["merchant", "create"]
            said = deployment.run(*words, *(["--json"] if is_first else []))
            told = json.loads(said) if is_first else told
        yield {
            "MERCHANT_WALLET_URL": url,
            "MERCHANT_WALLET_APP_KEY": told["appKey"],
            "MERCHANT_WALLET_SECRET": told["appSecret"],
            "MERCHANT_WALLET_CALLBACK_SECRET": told["callbackSecret"],
        }
    finally:
        deployment.stop()


@pytest.mark.long
@pytest.mark.timeout(2 * TIMEOUT_S)
@each_client
def test_what_the_page_says_to_type_pays_and_gets_its_callback(
    client: Client, environment: dict[str, str], tmp_path: Path
) -> None:
    program = NEEDS[client.page]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    folder = tmp_path / client.folder
    shutil.copytree(ROOT / client.folder, folder, ignore=LEFT_OUT)
    done = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(client.run)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The payment, the refusal, and the status that the callback of the payout reports.
    for said in (r"40\.5", r"42200", r"(?i)status\D{0,9}2\b"):
        assert re.search(said, done.stdout), done.stdout


@each_client
def test_a_page_has_every_part_of_its_example_and_how_to_run_it(client: Client, site: Path) -> None:
    for folder in (site, site / "zh"):
        page = (folder / "quick-start" / client.page / "index.html").read_text(encoding="utf-8")
        for part in ("run", *PARTS, "program"):
            assert f'id="{part}"' in page, part
        assert "docs:begin" not in page
