"""The version of this program. `pyproject.toml` alone names it; an installation carries it as metadata."""

from functools import cache
from importlib.metadata import version


@cache
def read_version() -> str:
    """Such as `0.1.0`."""
    return version("merchant-wallet")


def write_agent(page: str | None = None) -> str:
    """The User-Agent of our requests: product and version, and the URL of the page that explains them."""
    return f"merchant-wallet/{read_version()}" + ("" if page is None else f" (+{page})")
