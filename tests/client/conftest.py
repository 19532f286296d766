"""The real service of the journeys."""

from tests.journeys.conftest import clock, platform

__all__ = ["clock", "platform"]
