"""The documents' story, run once on its own database for all tests here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.documents.blocks import make_blocks
from scripts.documents.story import Story, run_story
from tests.conftest import TEMPLATE, SharedPostgres


@pytest.fixture(scope="package")
def story(postgres: SharedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A new run of the story behind the printed examples."""
    with postgres.database(TEMPLATE) as url:
        yield asyncio.run(run_story(url, tmp_path_factory.mktemp("story")))


@pytest.fixture(scope="package")
def blocks(story: Story) -> dict[str, str]:
    """Every generated block as it should be in the pages."""
    return make_blocks(story)


@pytest.fixture
def integrating() -> str:
    """The merchants' page."""
    return (Path(__file__).parents[2] / "docs" / "integrating.md").read_text(encoding="utf-8")
