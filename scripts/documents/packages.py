"""The map of packages in ARCHITECTURE.md: each package of merchant_wallet, the lowest layer first.

The order comes from import-linter's layers. The text is the first sentence of each package's docstring.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "merchant_wallet"


def list_packages() -> list[str]:
    """The packages by layer, the lowest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [
        package.strip().removeprefix("merchant_wallet.")
        for layer in reversed(layers)
        for package in layer.split("|")
    ]


def list_map_rows() -> Iterator[tuple[str, str, str]]:
    """A row for each package and each package within it: its path, its contents, its modules."""
    for package in list_packages():
        yield _describe(PACKAGE / package)
        yield from (_describe(path.parent) for path in sorted((PACKAGE / package).glob("*/__init__.py")))


def _describe(folder: Path) -> tuple[str, str, str]:
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    first = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    return f"`{folder.relative_to(PACKAGE)}/`", first, " ".join(f"`{name}`" for name in modules)
