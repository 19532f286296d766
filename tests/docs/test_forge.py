"""The files that a forge reads: forms, owners and the workflow that calls `.ci/run`."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FORGE: Final = ROOT / ".github"


def test_each_path_with_owners_exists() -> None:
    lines = (FORGE / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    owned = [line.split() for line in lines if line and not line.startswith("#")]
    assert owned[0][0] == "*"
    assert [path for path, *_ in owned[1:] if not (ROOT / path.lstrip("/")).exists()] == []
    for path, *owners in owned:
        assert owners, path
        assert [owner for owner in owners if not re.fullmatch(r"@[\w-]+/[\w-]+", owner)] == [], path


def test_the_workflow_runs_what_continuous_integration_runs_and_pins_each_action() -> None:
    workflow = (FORGE / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"^ +run: (\S*\.ci\S*)$", workflow, re.M) == [".ci/run"]
    assert (ROOT / ".ci" / "run").exists()
    actions = re.findall(r"uses: (\S+)", workflow)
    assert actions
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
    assert "permissions:\n  contents: read\n" in workflow


def test_each_form_asks_something_under_a_name_of_its_own() -> None:
    forms = [path for path in sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
    texts = [path.read_text(encoding="utf-8") for path in forms]
    assert len(texts) == 2
    assert len({re.findall(r"^name: (.+)$", text, re.M)[0] for text in texts}) == 2
    for text in texts:
        ids = re.findall(r"^    id: (\w+)$", text, re.M)
        assert len(set(ids)) == len(ids) > 0
        assert "required: true" in text
