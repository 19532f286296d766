"""The units of systemd: valid, hardened, and with the settings and options that the program has.

`systemd-analyze` reads them as files. No systemd needs to run.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from merchant_wallet.base.setting_sources import PREFIX
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.cli.program import load_all_commands

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))
PROGRAM = "/opt/merchant-wallet/bin/merchant-wallet"
MOST_EXPOSED = 2.5
NOT_FOR_THE_SIGNER = {
    # The kernel's word about who asks must be true, see the unit.
    "PrivateUsers=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
}
analysed = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)


def lines_of(unit: Path) -> list[str]:
    return [line for line in unit.read_text().splitlines() if line and not line.startswith("#")]


def analyse(*words: str) -> str:
    done = subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def test_there_is_a_unit_for_each_process() -> None:
    names = ["migrate", "signer", "web@", "worker"]
    assert [unit.name for unit in UNITS] == [f"merchant-wallet-{name}.service" for name in names]


@analysed
@each_unit
def test_a_unit_is_less_exposed_than_was_promised(unit: Path) -> None:
    said = analyse("security", "--offline=true", "--no-pager", str(unit))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found is not None, said
    assert float(found[1]) < MOST_EXPOSED


@analysed
@each_unit
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    # The program itself is not installed here.
    (tmp_path / unit.name).write_text(unit.read_text().replace(PROGRAM, "/bin/true"))
    assert analyse("verify", "--man=no", "--recursive-errors=no", str(tmp_path / unit.name)) == ""


@each_unit
def test_a_unit_names_settings_that_exist_and_no_secret(unit: Path) -> None:
    named = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit.read_text(), re.M))
    assert named.pop("WALLET_CONFIG") == "/etc/merchant-wallet/wallet.toml"
    for variable, value in named.items():
        assert not SETTINGS[variable.removeprefix(PREFIX).lower()].secret, (variable, value)
    # A credential with the name of a setting is that setting.
    credentials = dict(re.findall(r"^LoadCredential=(\w+):(.*)$", unit.read_text(), re.M))
    assert credentials
    for variable, path in credentials.items():
        assert SETTINGS[variable.removeprefix(PREFIX).lower()].secret, variable
        assert path.startswith("/etc/merchant-wallet/")


@each_unit
def test_a_unit_runs_a_command_that_exists(unit: Path) -> None:
    [line] = [line for line in lines_of(unit) if line.startswith("ExecStart=")]
    program, name, *words = line.removeprefix("ExecStart=").split()
    assert program == PROGRAM
    command: Any = load_all_commands().commands[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options


def test_all_units_have_the_same_hardening() -> None:
    def hardening_of(unit: Path) -> set[str]:
        kinds = (
            r"Protect|Private|Restrict|SystemCall|Capability|NoNew|Device|Lock|MemoryDeny|RemoveIPC|Keyring"
        )
        return {line for line in lines_of(unit) if re.match(kinds, line)}

    migrate, signer, web, worker = map(hardening_of, UNITS)
    assert migrate == web == worker
    assert web - signer == NOT_FOR_THE_SIGNER
    assert {"PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX"} <= signer


def test_each_process_has_a_user_of_its_own() -> None:
    users = {unit.name: re.findall(r"^User=(.*)$", unit.read_text(), re.M) for unit in UNITS}
    listed = re.findall(r"^u (\S+) ", UNITS[0].with_name("sysusers.conf").read_text(), re.M)
    long_running = [users[unit.name] for unit in UNITS if "Type=notify" in unit.read_text()]
    assert sorted(name for [name] in long_running) == sorted(listed)
