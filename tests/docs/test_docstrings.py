"""Docstrings name only what exists: the classes after "Raises", modules with their package, and files."""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "merchant_wallet"
FOLDERS = ("src", "tests", "bench", "devnet", "scripts")
NOT_CLASSES = {"Chinese"}
FILE_ENDINGS = (".sql", ".py", ".md", ".toml", ".html", ".jsonl")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def trees() -> dict[Path, ast.Module]:
    paths = [path for path in files() if path.suffix == ".py"]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def files() -> list[Path]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    return [path for path in paths if "node_modules" not in path.parts and path.is_file()]


def docstrings() -> Iterator[tuple[Path, str]]:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield path, re.sub(r"\s+", " ", text)


def class_names() -> set[str]:
    """Builtin classes, our classes, and whatever the code imports or reads from a module by name."""
    names = set(vars(builtins))
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
    return names


def raised_in(text: str) -> list[str]:
    """The classes of the sentences that begin with "Raises"; `psycopg.Error` without its module."""
    sentences = re.findall(r"\bRaises\b(.*?)(?:\.(?= |$)|$)", text)
    return [name for sentence in sentences for name in re.findall(r"\b[A-Z]\w*[a-z]\w*", sentence)]


def module_names() -> set[str]:
    """Our modules and packages below `merchant_wallet`, and the names that a module defines at its top."""
    names = set()
    for path, tree in trees().items():
        if not (ROOT / path).is_relative_to(PACKAGE):
            continue
        module = ".".join((ROOT / path).relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__")
        module = module.removesuffix(".")
        names.add(module)
        names.update(f"{module}.{name}" for name in defined_by(tree))
    return names


def defined_by(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, DOCUMENTED) and not isinstance(node, ast.Module):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.asname or alias.name for alias in node.names)


def test_every_class_after_raises_exists() -> None:
    known = class_names()
    named = [(path, name) for path, text in docstrings() for name in raised_in(text)]
    assert len(named) > 300
    assert [f"{path}: {name}" for path, name in named if name not in known | NOT_CLASSES] == []


def test_a_class_that_is_gone_would_be_found() -> None:
    assert raised_in("Reads on. Raises GoneClass, `psycopg.Error` and what `x.y` raises.") == [
        "GoneClass",
        "Error",
    ]
    assert "GoneClass" not in class_names()
    assert {"ValueError", "ConfigError", "OperationalError"} <= class_names()


def test_every_module_that_is_named_with_its_package_exists() -> None:
    known = module_names()
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    named = [
        (path, name)
        for path, text in docstrings()
        for name in re.findall(r"`(?:merchant_wallet\.)?((?:[a-z_]\w*\.)+[a-z_]\w*)`", text)
        if name.split(".")[0] in rooms and not name.endswith(FILE_ENDINGS)
    ]
    assert {"chains.keys.signing_journal"} <= {name for _, name in named}
    assert [f"{path}: {name}" for path, name in named if name not in known] == []


def test_every_file_that_is_named_exists() -> None:
    known = {path.name for path in (*files(), *ROOT.iterdir())}
    named = [
        (path, name)
        for path, text in docstrings()
        for name in re.findall(r"`(?:[\w-]+/)*([a-z][\w-]*\.(?:sql|py|md|toml|html))`", text)
    ]
    assert len(named) > 10
    assert [f"{path}: {name}" for path, name in named if name not in known] == []
