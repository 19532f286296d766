"""The code that the merchants' page prints signs and verifies like the service."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from devnet.programs import find_node
from scripts.documents.story import SECRET, VECTOR, VECTOR_OPERATION, Story
from tests.tools import require_tool, search_path

from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, encode_success, list_present_texts
from merchant_wallet.base.codes import SUCCESS
from merchant_wallet.base.signing import HMAC, sign, sign_response

DRIVERS = Path(__file__).with_name("drivers")
VECTORS = Path(__file__).parents[2] / "vectors"
TIMEOUT_S = 240
RECEIVERS = ("PHP", "Java")
"""Languages whose code also receives callbacks. It refuses all that a client must refuse."""


class Language(NamedTuple):
    """A language of the page: its file, the driver, its tools and how to run it. `{node}` is Node.js."""

    name: str
    code: str
    driver: str
    needs: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]


LANGUAGES = (
    Language("Python", "wallet.py", "driver.py", (), ((sys.executable, "driver.py"),)),
    Language("JavaScript", "wallet.mjs", "driver.mjs", (), (("{node}", "driver.mjs"),)),
    Language("PHP", "wallet.php", "driver.php", ("php",), (("php", "driver.php"),)),
    Language(
        "Java",
        "Wallet.java",
        "Driver.java",
        ("javac",),
        (("javac", "-encoding", "UTF-8", "Wallet.java", "Driver.java"), ("java", "Driver")),
    ),
    Language("Go", "wallet/wallet.go", "main.go", ("go",), (("go", "run", "."),)),
)


CALLBACKS = (
    Language("Python", "callback.py", "callback_driver.py", (), ((sys.executable, "callback_driver.py"),)),
    Language("JavaScript", "callback.mjs", "callback_driver.mjs", (), (("{node}", "callback_driver.mjs"),)),
    Language("PHP", "callback.php", "callback_driver.php", ("php",), (("php", "callback_driver.php"),)),
    Language("Go", "callback/callback.go", "callback_main.go", ("go",), (("go", "run", "."),)),
    Language(
        "Java",
        "Callback.java",
        "CallbackDriver.java",
        ("javac",),
        (("javac", "-encoding", "UTF-8", "Callback.java", "CallbackDriver.java"), ("java", "CallbackDriver")),
    ),
)
"""The blocks that check the headers of a callback."""


class Question(NamedTuple):
    """A question to the code, and the service's own answer."""

    words: tuple[str, ...]
    answer: str


def read_code(page: str, name: str) -> str:
    found = re.search(rf"<!-- code: {re.escape(name)} -->\n```\w+\n(.*?)\n```\n", page, re.S)
    assert found, name
    return found[1]


def signing_questions() -> list[Question]:
    path = f"/merchant/{VECTOR_OPERATION}"
    sets: list[dict[str, str]] = [
        {name: str(value) for name, value in VECTOR.items()},
        {"b": "1", "a_": "2", "B": "3", "a0": "4", "aB": "5", "a": "6"},
        {"extUserId": "Zoë 😀 é", "x": "a=b&c=d +%20", "sign": "not signed"},
    ]
    questions = []
    for texts in sets:
        signed = {name: text for name, text in texts.items() if name != "sign"}
        pairs = [f"{name}={text}" for name, text in texts.items()]
        questions.append(Question(("sign", path, SECRET, *pairs, "empty="), sign(HMAC, SECRET, path, signed)))
    return questions


def odd_answer() -> tuple[str, str, str]:
    """Path, nonce and answer with everything that is hard for a JSON parser."""
    path, nonce = "/merchant/getMerchantCustomer", "n0"
    items: list[DataItem] = [
        ("userId", "9007199254740991", NUMBER),
        ("extUserId", '"]}, 12.50 \\u0041 {[', TEXT),
        ("username", "Zoë 😀 \\ / \u2028 'x'", TEXT),
        ("balance", "0.000001", NUMBER),
        ("fee", "123456789012.123456", NUMBER),
        ("notifyTime", None, NUMBER),
        ("rate", "100", NUMBER),
    ]
    signature = sign_response(HMAC, SECRET, path, list_present_texts(items), 200, nonce)
    return path, nonce, encode_success(items, signature).decode()


def verifying_questions(story: Story) -> list[Question]:
    true = [
        (f"/merchant/{example.operation}", example.nonce, example.answer)
        for example in story.operations.values()
    ]
    path, nonce, odd = odd_answer()
    # The same answer with every character beyond ASCII escaped, as a proxy may rewrite it.
    escaped = "".join(c if ord(c) < 128 else json.dumps(c)[1:-1] for c in odd)
    true += [(path, nonce, odd), (path, nonce, escaped)]
    quote = story.operations["getWithdrawFee"]
    joined = quote.answer.replace(
        '"amount":12.5,"amountArrival":11.5', '"amount":"12.5\\namountArrival=11.5"'
    )
    joined_name = quote.answer.replace('"amount":12.5,"amountArrival"', '"amount=12.5\\namountArrival"')
    created = story.operations[VECTOR_OPERATION]
    path = f"/merchant/{VECTOR_OPERATION}"
    fee_path = "/merchant/getWithdrawFee"
    false = [
        # The lines that are signed are the same, the fields are not.
        (fee_path, quote.nonce, joined),
        (fee_path, quote.nonce, joined_name),
        (path, created.nonce, created.answer.replace('"amount":12.5,', '"amount":12.50,')),
        (path, created.nonce, created.answer.replace('"txnStatus":"0"', '"txnStatus":"2"')),
        (path, "another", created.answer),
        ("/merchant/exchange", created.nonce, created.answer),
        (path, created.nonce, re.sub(r'"sign":"(.)\w+"', r'"sign":"\1"', created.answer)),
        (path, created.nonce, re.sub(r'"sign":"\w+"', '"sign":""', created.answer)),
        (path, created.nonce, re.sub(r',"sign":"\w+"', "", created.answer)),
        (path, created.nonce, story.refusals[0].answer),
    ]
    return [
        *[Question(("verify", path, SECRET, nonce, raw), "true") for path, nonce, raw in true],
        *[Question(("verify", path, SECRET, nonce, raw), "false") for path, nonce, raw in false],
        Question(("verify", path, "another secret", created.nonce, created.answer), "false"),
    ]


def read_vectors(name: str) -> list[dict[str, Any]]:
    """The vectors of HMAC whose body fits a line of a question."""
    cases: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return [
        case for case in cases if case["method"] == HMAC and not re.search(r"[\t\r\n\x80-\x9f]", case["body"])
    ]


def vector_questions() -> list[Question]:
    """Every answer and every callback, as all clients judge them."""
    answers = [
        Question(
            ("verify", case["path"], case["secret"], case["nonceStr"], case["body"]),
            "true" if case["valid"] else "false",
        )
        for case in read_vectors("answers")
        if case["code"] == SUCCESS
    ]
    callbacks = [
        Question(
            ("callback", "callback", case["secret"], str(case["now_ms"]), case["body"]),
            "true" if case["validBySign"] else "false",
        )
        for case in read_vectors("callbacks")
    ]
    return [*answers, *callbacks]


def header_questions() -> list[Question]:
    """Every callback whose headers a receiver judges without a look into its body."""
    shown = ("webhook-id", "webhook-timestamp", "webhook-signature")
    questions = []
    for case in read_vectors("callbacks"):
        headers = {name.lower(): value for name, value in case["headers"].items()}
        words = (
            str(case["now_ms"] // 1000),
            case["callbackSecret"],
            *(headers.get(name, "") for name in shown),
        )
        if case["validByWebhook"] or re.search(": (?:received|altered|headers): ?", case["name"]):
            is_other = case["why"].startswith("webhook-id is not")
            answer = "true" if case["validByWebhook"] or is_other else "false"
            questions.append(Question((*words, case["body"]), answer))
    return questions


def ask(language: Language, folder: Path, questions: Sequence[Question]) -> list[str]:
    """Run each step in the folder. The last step reads the questions and prints the answers."""
    text = "".join("\t".join(question.words) + "\n" for question in questions)
    environment = {
        **os.environ,
        "PATH": search_path(),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=mod",
        "GO111MODULE": "on",
    }
    if "HOME" not in environment:
        environment.setdefault("GOCACHE", str(folder / "cache"))
    said = b""
    for step in language.steps:
        done = subprocess.run(
            [word.replace("{node}", str(find_node())) if "{" in word else word for word in step],
            cwd=folder,
            input=text.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        said = done.stdout
    return said.decode().splitlines()


def prepare(language: Language, page: str, folder: Path) -> None:
    """Put the printed code and its driver into a folder."""
    for tool in language.needs:
        require_tool(tool)
    code = folder / language.code
    code.parent.mkdir(exist_ok=True)
    code.write_text(read_code(page, code.name) + "\n", encoding="utf-8")
    shutil.copy(DRIVERS / language.driver, folder)
    (folder / "go.mod").write_text("module driver\n\ngo 1.18\n")


@pytest.mark.parametrize("language", CALLBACKS, ids=lambda language: language.name)
def test_the_printed_code_judges_callbacks_as_all_clients_do(
    language: Language, integrating: str, tmp_path: Path
) -> None:
    prepare(language, integrating, tmp_path)
    questions = header_questions()
    assert {question.answer for question in questions} == {"true", "false"}
    answers = ask(language, tmp_path, questions)
    assert len(answers) == len(questions)
    assert [each for each in zip(answers, questions, strict=True) if each[0] != each[1].answer] == []


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_the_printed_code_signs_and_verifies_as_the_service_does(
    language: Language, story: Story, integrating: str, tmp_path: Path
) -> None:
    prepare(language, integrating, tmp_path)
    questions = [*signing_questions(), *verifying_questions(story)]
    if language.name in RECEIVERS:
        questions += vector_questions()
    answers = ask(language, tmp_path, questions)
    assert len(answers) == len(questions)
    assert [each for each in zip(answers, questions, strict=True) if each[0] != each[1].answer] == []


def test_no_code_block_is_without_a_language_that_runs_it(integrating: str) -> None:
    assert re.findall(r"<!-- code: (\S+) -->", integrating) == [
        Path(each.code).name for each in (*LANGUAGES, *CALLBACKS)
    ]


def test_the_javascript_code_gives_amounts_as_texts(integrating: str, tmp_path: Path) -> None:
    (tmp_path / "wallet.mjs").write_text(read_code(integrating, "wallet.mjs") + "\n", encoding="utf-8")
    shutil.copy(DRIVERS / "call.mjs", tmp_path)
    said = subprocess.run(
        [find_node(), "call.mjs"], cwd=tmp_path, capture_output=True, timeout=TIMEOUT_S, check=True
    )
    assert json.loads(said.stdout) == [200, "4611686018427.387904", "0.000001"]
