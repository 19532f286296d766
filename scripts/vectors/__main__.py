"""Write `vectors/*.json`: `python -m scripts.vectors`, or `make vectors`."""

import json
from pathlib import Path
from typing import Any, Final

from scripts.vectors.answer_cases import list_answers
from scripts.vectors.callback_cases import list_callbacks
from scripts.vectors.codes import list_codes
from scripts.vectors.request_cases import list_requests

FOLDER: Final = Path(__file__).resolve().parents[2] / "vectors"


def write_vectors() -> dict[str, str]:
    """The text of each file, one case on each line."""
    files: dict[str, list[dict[str, Any]]] = {
        "requests.json": list(list_requests()),
        "answers.json": list(list_answers()),
        "callbacks.json": list(list_callbacks()),
        "codes.json": list_codes(),
    }
    for name, cases in files.items():
        names = [case["name"] for case in cases]
        assert len(set(names)) == len(names), (
            name,
            sorted({each for each in names if names.count(each) > 1}),
        )
    return {name: _write(cases) for name, cases in files.items()}


def _write(cases: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


def main() -> None:
    """Write the files."""
    for name, text in write_vectors().items():
        (FOLDER / name).write_text(text, encoding="ascii")
        print(f"wrote vectors/{name}: {text.count(chr(10)) - 2} cases")


if __name__ == "__main__":
    main()
