"""The collections sign as the interface does, and believe no altered answer: all shared vectors."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scripts.documents.collection_files import BRUNO, POSTMAN, list_references, read_script, write_collections

from devnet import programs
from merchant_wallet.base.signing import HMAC, sign
from merchant_wallet.merchants.records import OPERATIONS

FOLDER = Path(__file__).parent
VECTORS = FOLDER.parents[1] / "vectors"
SIGNED = "the answer is signed with the secret"
PROGRAMS = ("postman", "bruno")
APPLICATION_JSON = "application/json"
SHORTEST = re.compile(r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{0,7}[1-9])?")
"""A number as the service writes it, and as JavaScript prints it."""
MAX_EXACT_LENGTH = 16

by_program = pytest.mark.parametrize("program", PROGRAMS)


@cache
def read_vectors(name: str) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    return vectors


def run_script(program: str, part: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run a script for each case, as the program does."""
    told = {"program": program, "script": read_script("common", f"{program}_{part}"), "cases": cases}
    done = subprocess.run(
        [programs.find_node(), FOLDER / "run_scripts.mjs"],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


@by_program
def test_a_request_is_signed_as_the_interface_wants(program: str) -> None:
    cases = [
        {"path": case["path"], "body": case["body"], "secret": case["secret"], "nonceStr": "", "answer": ""}
        for case in read_vectors("requests.json")
        if case["method"] == HMAC and case["valid"] and case["contentType"] == APPLICATION_JSON
    ]
    assert len(cases) > 100
    for case, result in zip(cases, run_script(program, "before", cases), strict=True):
        sent = json.loads(result["sent"])
        texts = {name: text for name, text in sent.items() if name != "sign" and text not in (None, "")}
        assert sent["sign"] == sign(HMAC, case["secret"], case["path"], texts)
        # A number stays the text that was written.
        written = json.loads(case["body"], parse_int=str, parse_float=str)
        fresh = {"appKey", "timestamp", "nonceStr", "sign"}
        assert {n: v for n, v in sent.items() if n not in fresh} == {
            n: v for n, v in written.items() if n not in fresh
        }


@by_program
def test_only_an_answer_that_is_signed_with_the_secret_is_believed(program: str) -> None:
    cases = [
        {name: case[name] for name in ("path", "secret", "nonceStr")}
        | {"body": "{}", "answer": case["body"], "outcome": case["outcome"], "name": case["name"]}
        for case in read_vectors("answers.json")
        if case["method"] == HMAC and case["code"] == 200 and is_shown(case, program)
    ]
    assert len(cases) > 100
    results = run_script(program, "after", cases)
    wrong = [
        case["name"]
        for case, result in zip(cases, results, strict=True)
        if result["tests"].get(SIGNED) != (case["outcome"] == "success")
    ]
    assert wrong == []


def is_shown(case: dict[str, Any], program: str) -> bool:
    """Whether a program shows a script the answer as it came.

    Both show no script an answer that is no JSON. Bruno shows the values that JavaScript reads, so a number
    must be in its shortest form, and a field that is there twice is there once.
    """
    if case["outcome"] not in ("success", "unsafe"):
        return False
    try:
        data = json.loads(case["body"], parse_int=Number, parse_float=Number)["data"]
    except (ValueError, KeyError, TypeError):
        return False
    if not isinstance(data, dict):
        return False
    if program == "postman":
        return True
    numbers = [value for value in data.values() if isinstance(value, Number)]
    is_exact = all(SHORTEST.fullmatch(number) and len(number) <= MAX_EXACT_LENGTH for number in numbers)
    return is_exact and not case["name"].endswith("is there twice")


class Number(str):
    """The text of a number."""


def test_both_collections_have_every_operation_and_no_secret() -> None:
    files = write_collections()
    postman = json.loads(files[POSTMAN])
    assert {item["name"] for item in postman["item"]} == set(OPERATIONS)
    assert {path.stem for path in files if path.suffix == ".bru"} >= set(OPERATIONS)
    assert [reference.name for reference in list_references()] == [item["name"] for item in postman["item"]]
    secrets = [value["value"] for value in postman["variable"] if value["key"] in ("secret", "appKey")]
    assert secrets == ["", ""]
    assert "vars:secret [\n  secret\n]" in files[BRUNO / "environments" / "sandbox.bru"]
