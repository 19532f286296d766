"""The files that are made of the interface's description match the present code."""

from scripts.documents.collection_files import BRUNO, FOLDER
from scripts.documents.interface import DOCUMENT, write_examples, write_interface
from scripts.documents.story import Story

STALE = "it is out of date: run `make docs`"


def test_the_examples_are_those_of_a_run_now(story: Story) -> None:
    for path, text in write_examples(story).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: {STALE}"


def test_the_document_and_the_collections_are_what_the_description_gives_now() -> None:
    files = write_interface()
    assert DOCUMENT in files
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: {STALE}"


def test_no_file_of_a_collection_is_left_over() -> None:
    kept = {path for path in FOLDER.rglob("*") if path.is_file()}
    assert kept == {path for path in write_interface() if FOLDER in path.parents}
    assert any(path.parent == BRUNO for path in kept)
