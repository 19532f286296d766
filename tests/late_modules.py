"""Modules of other projects that few tests need and that take long to import.

Each worker imports every file of tests to collect them, so what is imported there is paid for three times.
"""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def import_late(name: str) -> ModuleType:
    """A module that is imported when something of it is first used."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
