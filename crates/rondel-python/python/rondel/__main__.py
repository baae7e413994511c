"""``python -m rondel``: the command."""

from __future__ import annotations

import os
import sys

from ._native import RondelError
from ._program import find_program


def main() -> int:
    """Replace this process by the command."""
    try:
        program = find_program()
        os.execv(program, ["rondel", *sys.argv[1:]])
    except (RondelError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
