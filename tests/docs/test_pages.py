"""The written pages: links work, words are used in the code, decisions and dependencies have a reason."""

import re
import tomllib
from pathlib import Path

import pytest
from scripts.documents.decisions import FOLDER, list_pages, read_decision
from scripts.documents.packages import list_packages
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
DECISIONS = list_pages()
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(FOLDER.glob("*.md")),
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
]
MAX_DECISION_LINES = 60
WORD_ROW = r"^\| ([a-z][a-z -]+) \|"

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.S)


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    heads = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-") for head in heads}


@by_page
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors_of(linked), f"{page.name} links to {target}"


def test_every_word_of_the_glossary_is_used_in_the_code() -> None:
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")]
    code = re.sub(r"\s+", " ", " ".join(path.read_text(encoding="utf-8") for path in files)).lower()
    words = re.findall(WORD_ROW, (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8"), re.M)
    assert 0 < len(words) <= 40
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}s?\b", code)] == []


def test_the_glossary_explains_each_word_once() -> None:
    words = re.findall(WORD_ROW, (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8"), re.M)
    assert sorted(words) == sorted(set(words))


def test_decisions_are_numbered_without_gaps_and_titled_by_their_number() -> None:
    for number, page in enumerate(DECISIONS, 1):
        assert page.name.startswith(f"{number:04d}-")
        assert page.read_text(encoding="utf-8").startswith(f"# {number:04d} ")


@each_row("page", DECISIONS, ids=lambda page: page.name)
def test_a_decision_has_its_four_parts_and_fits_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.M) == ["Context", "Decision", "Weighed", "Consequences"]
    assert len(text.splitlines()) <= MAX_DECISION_LINES


def test_what_supersedes_a_decision_is_later() -> None:
    known = {page.name[:4] for page in DECISIONS}
    for decision in map(read_decision, DECISIONS):
        assert set(decision.successors) <= known, decision.page.name
        assert all(number > decision.number for number in decision.successors), decision.page.name


def test_a_decision_that_replaces_another_is_named_by_its_status() -> None:
    decisions = {page.name[:4]: read_decision(page) for page in DECISIONS}
    silent = [
        (number, older)
        for number, decision in decisions.items()
        for older in decision.replaced
        if number not in decisions[older].successors
    ]
    assert len(decisions) > 100
    assert silent == []


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [name for names in project["project"]["optional-dependencies"].values() for name in names]
    needed = [*project["project"]["dependencies"], *extras]
    named = [*needed, *project["dependency-groups"]["dev"]]
    page = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    runtime = {re.split(r"[^\w-]", name)[0] for name in needed}
    assert set(re.findall(r"^\| ([a-z][a-z0-9-]+) \|", page, re.M)) == runtime
    assert [name for name in named if re.split(r"[^\w-]", name)[0] not in page] == []


def test_every_make_target_is_explained_to_contributors() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [target for target in targets if target != "help" and f"`make {target}`" not in page] == []


def test_there_are_at_most_28_packages_and_each_has_its_layer() -> None:
    package = ROOT / "src" / "merchant_wallet"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {path.name for path in package.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert sorted(list_packages()) == sorted(folders)
    assert len(folders) <= 28


def test_every_log_event_that_operators_are_told_of_is_logged() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    table = page.split("## When something happens", 1)[1].split("**A frozen payout.**", 1)[0]
    seen = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    told = {words for words in re.findall(r"`([a-z][a-z, ]* [a-z]+)`", seen) if not words.startswith("book ")}
    code = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert {"group not available", "group halved", "batch halved", "command failed"} <= told
    assert [event for event in sorted(told) if f'"{event}"' not in code] == []
