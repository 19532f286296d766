"""Write the generated parts of the documents: `make docs` runs this as `python -m scripts.write_docs`.

The tests in `tests/docs/` compare the pages with the same parts, made on their own database.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scripts.documents.alerts import RULES, write_rules
from scripts.documents.blocks import make_blocks
from scripts.documents.dashboards import write_dashboards
from scripts.documents.interface import write_examples, write_interface
from scripts.documents.pages import PAGES, renew
from scripts.documents.story import Story, run_story
from scripts.site.drawings import write_flows

from merchant_wallet import postgres
from merchant_wallet.observability import logs
from merchant_wallet.postgres.migrate import migrate


def main() -> None:
    """Run the story on its own PostgreSQL in a temporary folder, then write each page."""
    logs.set_up("warning", None)
    story = _run_story()
    blocks = make_blocks(story)
    for page in PAGES:
        page.write_text(renew(page.read_text(encoding="utf-8"), blocks), encoding="utf-8")
        print(f"wrote {page.name}")
    _write({RULES: write_rules(), **write_dashboards(), **write_flows()})
    # The document has the examples in it.
    _write(write_examples(story))
    _write(write_interface())


def _write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")


def _run_story() -> Story:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = postgres.start(folder, print)
        try:
            migrate(running.url, print)
            return asyncio.run(run_story(running.url, folder))
        finally:
            running.stop()


if __name__ == "__main__":
    main()
