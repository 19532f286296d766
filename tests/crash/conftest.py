"""Services of one's own to break; see `service.py`."""

from tests.crash.service import prepared_folder, service

__all__ = ["prepared_folder", "service"]
