# SPDX-License-Identifier: Apache-2.0
"""The safetensors package, and what pydag adds to the format."""

from typing import Any

# No path gives this name: names.py keeps it free.
STRUCTURE = "pydag..structure"
# In the JSON of the structure: the kinds of leaves that were written as arrays.
KINDS = "kinds"


def package() -> Any:
    """The safetensors package."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            'pydag.files needs safetensors and NumPy: pip install "pydag-tree[files]"'
        ) from error
    version = safetensors.__version__
    if tuple(map(int, version.split(".")[:2])) < (0, 8):
        raise ImportError(
            "pydag.files needs safetensors 0.8 or newer, and this is "
            f'{version}: pip install "safetensors>=0.8"'
        )
    return safetensors
