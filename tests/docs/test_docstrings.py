"""Docstrings name only what exists: the classes after "Raises", modules with their package, and files."""

import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/merchant_wallet")
FOLDERS = ("src", "tests", "bench", "devnet", "scripts")
NOT_CLASSES = {"Chinese"}
FILE_ENDINGS = (".sql", ".py", ".md", ".toml", ".html", ".jsonl")
TRIPLE_QUOTED = re.compile(r'"""(.*?)"""', re.S)
IMPORTED = re.compile(r"^\s*(?:from \S+ )?import (\([^)]*\)|[^\n]*)", re.M)
AT_THE_TOP = re.compile(r"^(?:(?:async )?def |class )?(\w+)(?=\(|:| =)", re.M)


@cache
def list_files() -> tuple[Path, ...]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return tuple(path.relative_to(ROOT) for path in paths if "node_modules" not in path.parts)


@cache
def read_sources() -> dict[Path, str]:
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in list_files() if path.suffix == ".py"}


def list_docstrings() -> Iterator[tuple[Path, str]]:
    """Every triple-quoted text that begins its line, without line breaks."""
    for path, source in read_sources().items():
        for found in TRIPLE_QUOTED.finditer(source):
            if not source[source.rfind("\n", 0, found.start()) + 1 : found.start()].strip():
                yield path, re.sub(r"\s+", " ", found[1]).strip()


def list_classes() -> set[str]:
    """Builtin classes, ours, and whatever the code imports or reads from a module by name."""
    names = set(vars(builtins))
    for source in read_sources().values():
        code = TRIPLE_QUOTED.sub("", source)
        names.update(re.findall(r"^\s*class (\w+)", code, re.M), re.findall(r"\.([A-Z]\w*)", code))
        names.update(name for line in IMPORTED.findall(code) for name in re.findall(r"\w+", line))
    return names


def find_raised(text: str) -> list[str]:
    """The classes of the sentences that begin with "Raises"; `psycopg.Error` without its module."""
    sentences = re.findall(r"\bRaises\b(.*?)(?:\.(?= |$)|$)", text)
    return [name for sentence in sentences for name in re.findall(r"\b[A-Z]\w*[a-z]\w*", sentence)]


def list_modules() -> set[str]:
    """Our modules and packages below `merchant_wallet`, and the names at the top of each."""
    names = set()
    for path, source in read_sources().items():
        if path.is_relative_to(PACKAGE):
            parts = path.relative_to(PACKAGE).with_suffix("").parts
            module = ".".join(part for part in parts if part != "__init__")
            code = TRIPLE_QUOTED.sub("", source)
            imported = [name for line in IMPORTED.findall(code) for name in re.findall(r"\w+", line)]
            names.update({module, *(f"{module}.{name}" for name in (*AT_THE_TOP.findall(code), *imported))})
    return names


def test_every_class_after_raises_exists() -> None:
    known = list_classes()
    named = [(path, name) for path, text in list_docstrings() for name in find_raised(text)]
    assert len(named) > 300
    assert [f"{path}: {name}" for path, name in named if name not in known | NOT_CLASSES] == []


def test_a_class_that_is_gone_would_be_found() -> None:
    text = "Reads on. Raises GoneClass, `psycopg.Error` and what `x.y` raises. Then it ends."
    assert find_raised(text) == ["GoneClass", "Error"]
    assert "Gone" + "Class" not in list_classes()


def test_every_module_that_is_named_with_its_package_exists() -> None:
    known = list_modules()
    packages = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    named = [
        (path, name)
        for path, text in list_docstrings()
        for name in re.findall(r"`(?:merchant_wallet\.)?((?:[a-z_]\w*\.)+[a-z_]\w*)`", text)
        if name.split(".")[0] in packages and not name.endswith(FILE_ENDINGS)
    ]
    assert len(named) > 5
    assert [f"{path}: {name}" for path, name in named if name not in known] == []


def test_every_file_that_is_named_exists() -> None:
    known = {path.name for path in (*list_files(), *ROOT.iterdir(), *(ROOT / "docs").rglob("*"))}
    named = [
        (path, name)
        for path, text in list_docstrings()
        for name in re.findall(r"`(?:[\w-]+/)*([a-z][\w-]*\.(?:sql|py|md|toml|html))`", text)
    ]
    assert len(named) > 10
    assert [f"{path}: {name}" for path, name in named if name not in known] == []
