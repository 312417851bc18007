"""Reading our own source."""

import ast
import gc


def parsed(source: str) -> ast.Module:
    """The syntax tree of a module's source.

    Python 3.11 raises SystemError where garbage is collected meanwhile and lets another thread
    parse: also one that writes a traceback (python/cpython#106905).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_enabled:
            gc.enable()
