"""The package's `.sql` files, as their modules read them."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import merchant_wallet
from merchant_wallet.base.db import SHARED_FRAGMENTS, Queries, Query

SOURCE = Path(merchant_wallet.__file__).parent


@lru_cache
def read_queries(path: Path) -> Mapping[str, Query]:
    """The queries of one file, with the fragments that its module makes."""
    if path == SHARED_FRAGMENTS:
        return {}
    for module_path in path.parent.glob("*.py"):
        if f'with_name("{path.name}")' in module_path.read_text():
            parts = module_path.relative_to(SOURCE.parent).with_suffix("").parts
            queries = vars(import_module(".".join(parts))).get("QUERIES")
            return queries if isinstance(queries, Queries) else Queries(path)
    raise AssertionError(f"no module reads {path}")
