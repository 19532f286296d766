"""The running service of the journeys' tests, for the tests of the document."""

from tests.journeys import conftest as journeys

clock, platform, own_platform, shop = journeys.clock, journeys.platform, journeys.own_platform, journeys.shop
