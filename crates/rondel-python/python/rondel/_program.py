"""The command `rondel` that comes with the package."""

from __future__ import annotations

import os
import shutil
import sysconfig

from ._native import RondelError

PROGRAM = "rondel"
VARIABLE = "RONDEL_PROGRAM"


def find_program() -> str:
    """Return the path of the native command.

    It is the one that the environment variable ``RONDEL_PROGRAM`` names; otherwise the one installed with this package;
    otherwise one among the scripts of this interpreter or of the user, or on ``PATH``.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not _is_program(named):
            raise RondelError(f"{VARIABLE} names {named}, which is no executable file")
        return os.path.abspath(named)
    for folder in _folders():
        path = os.path.join(folder, PROGRAM)
        if _is_program(path):
            return path
    found = shutil.which(PROGRAM)
    if found is None:
        raise RondelError(
            f"the command `{PROGRAM}` was not found: install the package from its wheel "
            f"(`pip install --force-reinstall rondel`), which contains it, put it on PATH, or name it in {VARIABLE}"
        )
    return found


def _folders() -> list[str]:
    """The folders into which installers put the scripts of a package: those of this package first."""
    installed = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [
        # `pip install --target`.
        os.path.join(installed, "bin"),
        # PREFIX/lib/python3.x/site-packages: environments, their overlays, and `--prefix`.
        os.path.normpath(os.path.join(installed, os.pardir, os.pardir, os.pardir, "bin")),
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")),
    ]


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
