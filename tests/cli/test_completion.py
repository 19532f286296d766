"""Completion in the three shells, as each shell asks for it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, clean_environment
from tests.forked_commands import ForkedCommand
from tests.tools import require_tool

SHELLS = ("bash", "zsh", "fish")
# Zsh completes only at a terminal: `zpty` is one. The line feeds end what was typed without running it.
ZSH_AT_A_TERMINAL = """
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; source ./completion; print ready$((40+2))'
zpty -r shell seen '*ready42*'
zpty -w -n shell $'merchant-wallet book cre\\t'
zpty -r shell seen '*credit*' && print -r -- "$seen"
zpty -d shell
"""


def run(shell: str, script: str, folder: Path) -> str:
    program = shell if shell == "bash" else require_tool(shell)
    environment = {**clean_environment(), "PATH": f"{COMMAND.parent}:{os.defpath}", "HOME": str(folder)}
    done = subprocess.run(
        [program, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def write_script(shell: str, folder: Path) -> None:
    source = {**clean_environment(), "_MERCHANT_WALLET_COMPLETE": f"source_{shell}"}
    with ForkedCommand(environment=source) as writing:
        status, script, errors = writing.finish()
    assert status == 0, errors
    (folder / "completion").write_text(script)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("merchant-wallet bo", {"book"}, marks=pytest.mark.extended),
        pytest.param("merchant-wallet book cre", {"credit"}, marks=pytest.mark.extended),
        ("merchant-wallet book credit --re", {"--reason", "--ref"}),
        ("merchant-wallet book credit Shop U", {"USDT"}),
    ],
)
def test_bash_completes_commands_options_and_words(tmp_path: Path, typed: str, offered: set[str]) -> None:
    write_script("bash", tmp_path)
    ask = f"""
        source ./completion
        COMP_WORDS=({typed})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _merchant_wallet_completion merchant-wallet
        echo "${{COMPREPLY[@]}}"
    """
    assert set(run("bash", ask, tmp_path).split()) == offered


@pytest.mark.extended
@pytest.mark.parametrize(("typed", "offered"), [("bo", "book"), ("book cre", "credit")])
def test_fish_completes(tmp_path: Path, typed: str, offered: str) -> None:
    write_script("fish", tmp_path)
    said = run("fish", f'source ./completion; complete -C "merchant-wallet {typed}"', tmp_path)
    assert [line.split()[0] for line in said.splitlines()] == [offered]


@pytest.mark.extended
def test_zsh_completes_at_a_terminal(tmp_path: Path) -> None:
    write_script("zsh", tmp_path)
    assert "merchant-wallet book credit" in run("zsh", ZSH_AT_A_TERMINAL, tmp_path)


def test_the_first_word_is_completed_without_importing_a_command(tmp_path: Path) -> None:
    asked = {
        **clean_environment(),
        "_MERCHANT_WALLET_COMPLETE": "complete_bash",
        "COMP_WORDS": "merchant-wallet wi",
        "COMP_CWORD": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = subprocess.run([COMMAND], env=asked, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["withdrawals"]
    assert "merchant_wallet.cli.program" in done.stderr
    assert "merchant_wallet.cli.withdrawals" not in done.stderr
    assert "psycopg" not in done.stderr
