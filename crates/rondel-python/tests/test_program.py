"""The command beside the package."""

import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest

import rondel
from rondel import _program

PACKAGE = pathlib.Path(rondel.__file__).parent


@pytest.fixture
def program(tmp_path, monkeypatch):
    """An empty installation: makes programs in its folders."""
    monkeypatch.delenv("RONDEL_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(_program, "__file__", str(tmp_path / "lib/python3/site-packages/rondel/_program.py"))

    def path(name, scheme=None):
        return str(tmp_path / ("user" if scheme else "scripts"))

    monkeypatch.setattr(sysconfig, "get_path", path)

    def put(folder, name="rondel"):
        file = tmp_path / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\necho found\n")
        file.chmod(0o755)
        return str(file)

    return put


def test_order_of_the_folders(program, monkeypatch):
    folders = ["path", "user", "scripts", "bin", "lib/python3/site-packages/bin"]
    for folder in folders:
        expected = program(folder)
        assert rondel.find_program() == expected
    named = program("elsewhere", "other")
    monkeypatch.setenv("RONDEL_PROGRAM", named)
    assert rondel.find_program() == named


def test_missing_program_is_an_error_with_advice(program):
    with pytest.raises(rondel.RondelError, match="pip install.*RONDEL_PROGRAM"):
        rondel.find_program()
    with pytest.raises(rondel.RondelError, match="pip install"):
        rondel.check("a", "b")
    with pytest.raises(rondel.RondelError, match="pip install"):
        next(rondel.run("a.yaml"))


def test_file_that_cannot_be_executed_is_passed_over(program):
    pathlib.Path(program("scripts")).chmod(0o644)
    expected = program("path")
    assert rondel.find_program() == expected


def test_named_program_must_exist(program, monkeypatch, tmp_path):
    program("scripts")
    monkeypatch.setenv("RONDEL_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(rondel.RondelError, match="RONDEL_PROGRAM names .*none"):
        rondel.find_program()
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    monkeypatch.setenv("RONDEL_PROGRAM", str(text))
    with pytest.raises(rondel.RondelError, match="cannot start"):
        rondel.check("a", "b")
    with pytest.raises(rondel.RondelError, match="cannot start"):
        rondel.run("a.yaml").start()


def module(*arguments, **environment):
    command = [sys.executable, "-m", "rondel", *arguments]
    variables = {**os.environ, **environment, "PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=variables)


def test_module_is_the_command():
    version = module("--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "rondel")
    assert module("check", "--no-such-option").returncode == 2
    missing = module("check", "none.rondel", "none.jsonl")
    assert "none" in missing.stderr


def test_module_without_the_command():
    run = module("--version", RONDEL_PROGRAM="/none")
    assert (run.returncode, run.stderr) == (2, "error: RONDEL_PROGRAM names /none, which is no executable file\n")


def test_monitors_need_no_module_of_the_command():
    program = (
        "import sys, rondel; rondel.Monitor('topic a { x: int }  property p = a.x > 0').push('a', {'x': 1}, time=0.0);"
        "print(sorted({'subprocess', 'logging', 'rondel._check', 'rondel._run'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_names_of_the_package():
    for name in rondel.__all__:
        assert getattr(rondel, name) is not None
    assert set(rondel.__all__) <= set(dir(rondel))
    with pytest.raises(AttributeError, match="chek"):
        rondel.chek
