# SPDX-License-Identifier: Apache-2.0
"""Hints for the error of a function that failed at a leaf."""

from .text import array_outline


def unopened_hint(leaf: object) -> str | None:
    """What to do about an object that is a leaf, though it holds arrays; None for other leaves.

    Args:
        leaf: Only its attributes are looked at.
    """
    try:
        attributes = object.__getattribute__(leaf, "__dict__")
    except (AttributeError, TypeError):
        return None
    if type(attributes) is not dict or array_outline(leaf) is not None:
        return None
    held = [name for name, value in attributes.items() if array_outline(value) is not None]
    if not held:
        return None
    cls = type(leaf)
    return (
        f"The leaf is an object of the class {cls.__qualname__}, which is not registered, and "
        f"holds arrays, as in its attribute {held[0]!r}: pydag.register_fields({cls.__name__}) "
        "makes such objects nodes."
    )
