"""The PIN is called by one Chinese name. The former name said that it pays, which it never did."""

import subprocess

from tests.tools import ROOT, require_tool

FORMER = "支付" + "密码"
NAME = "安全密码"
KINDS = ("*.py", "*.toml", "*.html", "*.md", "*.json", "*.js", "*.sql", "*.ts", "*.go", "*.php", "*.java")


def test_the_former_chinese_name_of_the_pin_stands_nowhere() -> None:
    listed = subprocess.run(
        [require_tool("git"), "ls-files", "-z", "--", *KINDS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    read = {name: (ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split("\0") if name}
    assert [name for name, text in read.items() if FORMER in text] == []
    assert sum(NAME in text for text in read.values()) >= 5
