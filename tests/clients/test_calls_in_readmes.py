"""What each client's README says of its methods, compared with the client's own code."""

import inspect
import re
from pathlib import Path

import pytest

from merchant_wallet.merchants.records import OPERATIONS
from merchant_wallet_client import MerchantWallet

ROOT = Path(__file__).parents[2]
JAVA = "clients/java/src/main/java/merchantwallet/MerchantWallet.java"


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def read_calls(path: str) -> dict[str, list[str]]:
    """The methods of a README's table, with their arguments in order."""
    found = re.findall(r"^\| `(\w+)\((.*?)\)` \| `\w+` \|$", read(path), re.M)
    return {name: re.findall(r"\w+", words) for name, words in found}


def to_snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda letter: "_" + letter[1].lower(), name)


def read_signatures(source: str, argument: str) -> dict[str, list[str]]:
    """The public methods of a source with the longest list of arguments each."""
    found: dict[str, list[str]] = {}
    for name, words in re.findall(r"public (?:function )?(?:\w+ )?(\w+)\(([^)]*)\)", source):
        arguments = re.findall(argument, words)
        found[name] = max(found.get(name, []), arguments, key=len)
    return found


def test_python_says_the_named_arguments() -> None:
    told = read_calls("client/README.md")
    assert sorted(told) == sorted(to_snake(name) for name in OPERATIONS)
    for name, arguments in told.items():
        assert list(inspect.signature(getattr(MerchantWallet, name)).parameters)[1:] == arguments


@pytest.mark.parametrize(
    ("readme", "source", "argument"),
    [
        ("clients/java/README.md", JAVA, r"(\w+)\s*(?:,|$)"),
        ("clients/php/README.md", "clients/php/src/MerchantWallet.php", r"\$(\w+)"),
    ],
)
def test_java_and_php_say_the_arguments_in_their_order(readme: str, source: str, argument: str) -> None:
    told, has = read_calls(readme), read_signatures(read(source), argument)
    assert sorted(told) == sorted(OPERATIONS)
    assert {name: has[name] for name in told} == told


def test_go_names_every_method_and_every_field_of_its_structures() -> None:
    source, told = read("clients/go/client.go"), read_calls("clients/go/README.md")
    assert sorted(told) == sorted(name[0].upper() + name[1:] for name in OPERATIONS)
    for name, words in told.items():
        assert f") {name}(" in source
        structure = (
            re.search(rf"type {words[1]} struct {{\n(.*?)\n}}", source, re.S) if len(words) > 1 else None
        )
        if structure is not None:
            assert re.findall(r"^\t(\w+) ", structure[1], re.M) == words[2:], name


def test_typescript_names_every_method_and_its_fields() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "clients/typescript/src").glob("*.ts"))
    told = read_calls("clients/typescript/README.md")
    assert sorted(told) == sorted(OPERATIONS)
    for name, fields in told.items():
        assert f"async {name}(" in source
        assert all(re.search(rf"readonly {field}\??:", source) for field in fields), name
