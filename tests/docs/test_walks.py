"""The walks in docs/walks: each step has its pictures, no picture is left over, and a test does the steps."""

import re
from pathlib import Path

from tests.browser.walks import FOLDER, list_pictures, read_steps
from tests.rows import each_row

IMAGES = FOLDER.parent / "images"
DOCUMENTS = sorted(FOLDER.glob("*.md"))
MAX_BYTES = 150_000


@each_row("document", DOCUMENTS, ids=lambda path: path.stem)
def test_each_step_has_a_picture_on_a_phone_and_each_picture_its_step(document: Path) -> None:
    steps, pictures = read_steps(document.stem), list_pictures(document.stem)
    assert all(path.exists() and path.stat().st_size <= MAX_BYTES for path in pictures)
    on_phones = [f"walk-{document.stem}-{number}-phone.webp" for number in range(1, len(steps) + 1)]
    names = [path.name for path in pictures]
    assert set(on_phones) <= set(names)
    assert sorted(names) == sorted(path.name for path in IMAGES.glob(f"walk-{document.stem}-*.webp"))


def test_a_test_does_each_walk() -> None:
    tests = "".join(
        path.read_text("utf-8") for path in FOLDER.parents[1].glob("tests/browser/test_walk_*.py")
    )
    told = re.findall(r'^NAME = "([a-z-]+)"$', tests, re.M)
    assert sorted(told) == [document.stem for document in DOCUMENTS]
