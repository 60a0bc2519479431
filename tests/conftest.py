# SPDX-License-Identifier: Apache-2.0
"""What all tests need: the installed package, and not the sources in the current directory."""

import importlib.util
import os

if importlib.util.find_spec("pydag._core") is None:
    raise ImportError(
        "the compiled core of pydag is missing: `make test` builds and installs the package. "
        "(`python -m pytest` finds the sources instead of the installed package; run `pytest`.)"
    )

# The same for the interpreters that tests start: `python -c` would look here first.
os.environ["PYTHONSAFEPATH"] = "1"
