"""Services of their own for tests that break them; see `service.py`."""

from tests.crash.service import prepared_folder, service

__all__ = ["prepared_folder", "service"]
