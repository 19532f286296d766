"""The container files: what the compose file names exists, and what `prepare` makes is what it names.

No container is built or started here: the operators' page says what was tried.
"""

import ast
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.tools import require_tool

from merchant_wallet.base.setting_sources import PREFIX
from merchant_wallet.base.settings import SETTINGS

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = (DEPLOY / "container" / "compose.yaml").read_text()
USERS = {
    "web": 10001,
    "owner": 10001,
    "worker": 10002,
    "signer": 10003,
    "postgres": 999,
    "proxy": 99,
    "grafana": 472,
}
"""Who reads the secrets in each folder."""


def test_every_setting_exists_and_every_secret_is_a_file() -> None:
    named = dict(re.findall(r"^ +(WALLET_\w+): (.*)$", COMPOSE, re.M))
    assert "WALLET_DATABASE_URL_FILE" in named
    for variable, value in named.items():
        name = variable.removeprefix(PREFIX).lower()
        if name not in SETTINGS:
            assert SETTINGS[name.removesuffix("_file")].secret, variable
        assert not (name in SETTINGS and SETTINGS[name].secret), variable
        if name.endswith("_file"):
            secret = value.removeprefix("/run/secrets/")
            assert re.search(rf"^  {secret}: {{file: ", COMPOSE, re.M), value


def test_every_service_is_hardened_and_has_a_user() -> None:
    services = re.split(
        r"^  (?=\w+:)", COMPOSE.partition("\nservices:\n")[2].partition("\nnetworks:\n")[0], flags=re.M
    )
    for service in filter(None, map(str.strip, services)):
        if re.match(r"web\d: \*web$", service):
            continue
        assert re.search(r"<<: \*(hardened|wallet)$", service, re.M), service
        assert re.search(r'^    user: "[1-9]', service, re.M), service
    assert re.search(r"^x-wallet:.*\n  <<: \*hardened$", COMPOSE, re.M)
    for line in ("read_only: true", "cap_drop: [ALL]", 'security_opt: ["no-new-privileges:true"]'):
        assert line in COMPOSE.partition("x-wallet:")[0]


def test_every_health_check_is_python_that_can_be_read() -> None:
    image = (DEPLOY / "container" / "Containerfile").read_text()
    programs = re.findall(r'"python", "-c", "([^"]+)"\]', COMPOSE + image)
    assert len(programs) == 4
    for program in programs:
        ast.parse(program)
        assert " " not in program


def test_the_image_has_the_users_of_the_compose_file() -> None:
    image = (DEPLOY / "container" / "Containerfile").read_text()
    for name in ("web", "worker", "signer"):
        assert f"merchant-wallet-{name}:x:{USERS[name]}:{USERS[name]}:" in image
        assert f'user: "{USERS[name]}:' in COMPOSE
    assert f'"--client", "{USERS["worker"]}"' in COMPOSE


def test_the_proxy_has_the_settings_that_were_tried() -> None:
    def rules_of(path: Path) -> list[str]:
        lines = [line.strip() for line in path.read_text().splitlines()]
        left_out = ("#", "bind ", "server ", "resolvers", "parse-resolv-conf", "hold ")
        return [line for line in lines if line and not line.startswith(left_out)]

    assert rules_of(DEPLOY / "container" / "haproxy.cfg") == rules_of(DEPLOY / "haproxy.cfg")


@pytest.mark.skipif(
    os.geteuid() != 0, reason="prepare gives files to the containers' users, which takes root"
)
def test_prepare_makes_every_file_that_is_mounted_and_replaces_none(tmp_path: Path) -> None:
    require_tool("openssl")
    folder = tmp_path / "container"
    shutil.copytree(
        DEPLOY / "container", folder, ignore=shutil.ignore_patterns("secrets", "alerts.yml", "*.env")
    )
    shutil.copy(DEPLOY.parent / "docs" / "alerts.yml", tmp_path)
    command = [str(folder / "prepare"), "wallet.example.com"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    files = re.findall(r"\{file: \./(\S+)\}", COMPOSE)
    first = {name: (folder / name).read_text() for name in files}
    assert len(files) == len(set(re.findall(r"^  ([\w-]+): \{file: ", COMPOSE, re.M))) == 11
    for name in files:
        found = (folder / name).stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (USERS[Path(name).parent.name], 0o400), name
    mounted = [*re.findall(r'^ +- "?\./([\w.]+):', COMPOSE, re.M), "haproxy.cfg", "wallet.env"]
    assert all((folder / name).exists() for name in mounted)
    assert first["secrets/web/master-key"] == first["secrets/worker/master-key"]
    for role in ("owner", "web", "worker"):
        url = first[f"secrets/{role}/database-url"].strip()
        user, password = re.fullmatch(r"postgresql://(\w+):(\w{32})@postgres/wallet", url).groups()  # type: ignore[union-attr]
        assert f"create role {user} login password '{password}';\n" in first["secrets/postgres/roles.sql"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert {name: (folder / name).read_text() for name in files} == first
