"""The examples of the documentation."""

import contextlib
import importlib
import io
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/how-to"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page, examples", [("python.md", 8), ("rtamt.md", 4), ("reelay.md", 1)])
def test_examples_of_the_page(page, examples, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = BLOCK.findall((PAGES / page).read_text())
    names, printed, compared = {}, None, 0
    for number, (language, text) in enumerate(blocks):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, f"{page}, block {number}", "exec"), names)
            printed = output.getvalue()
        elif language == "text":
            assert printed.rstrip() == text.rstrip(), f"block {number}"
            compared += 1
    assert compared == examples


@pytest.mark.parametrize(
    "name, printed",
    [
        ("rondel", "<Summary of 1 messages: p: violated>"),
        ("rondel.compat.rtamt", "3.0 3.0"),
        ("rondel.compat.reelay", "{'value': True}"),
    ],
)
def test_example_of_the_module(name, printed):
    example = re.search(r"::\n\n((?:    .*\n|\n)*)", importlib.import_module(name).__doc__)[1]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec("\n".join(line[4:] for line in example.splitlines()), {})
    assert printed in output.getvalue()


def test_import_needs_no_other_package():
    program = "import sys, rondel; print(sorted({'numpy', 'pyarrow', 'typing', 'asyncio'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"
