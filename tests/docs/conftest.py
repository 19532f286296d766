"""The documents' story, run once on its own database for all tests here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.documents.blocks import make_blocks
from scripts.documents.story import Story, run_story
from tests.conftest import TEMPLATE, SharedPostgres


@pytest.fixture(scope="package")
def story_database(postgres: SharedPostgres) -> Iterator[str]:
    """The database that the story is run on."""
    with postgres.database(TEMPLATE) as url:
        yield url


@pytest.fixture(scope="package")
def story(story_database: str, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A new run of the story behind the printed examples."""
    return asyncio.run(run_story(story_database, tmp_path_factory.mktemp("story")))


@pytest.fixture(scope="package")
def blocks(story: Story) -> dict[str, str]:
    """Every generated block as it should be in the pages."""
    return make_blocks(story)


@pytest.fixture
def integrating() -> str:
    """The merchants' page."""
    return (Path(__file__).parents[2] / "docs" / "integrating.md").read_text(encoding="utf-8")
