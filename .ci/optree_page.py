# SPDX-License-Identifier: Apache-2.0
"""Write docs/optree.md: every public name of optree's, pydag's, and what sharing means to it.

    python .ci/optree_page.py [FILE]

Names come from the optree that is installed; what is said of them is below. A name that nothing is
said of is an error.
"""

import sys
from pathlib import Path

import optree
import optree.dataclasses
import optree.functools
import optree.pytree
import optree.treespec

PAGE = Path(__file__).parents[1] / "docs" / "optree.md"

INTRODUCTION = """\
# From optree to pydag

Every public name of optree {version}, and what pydag's function does with shared objects. pydag's
name has `dag_` in place of `tree_`, `dagspec_` in place of `treespec_`, and `pydag` in place of
`pytree`; other names are the same. If nothing is shared, results, errors and calls of your
functions are optree's; texts of errors also name the place. The parameter `treespec` is called
`spec`. Functions that flatten also take `identity="all" | "nodes"`. To port a program:

```sh
perl -pi -e 'next if /^\\s*from jax/; s/\\boptree\\b/pydag/g; s/\\bpydag\\.pytree\\b/pydag.dag/g;
  s/\\bpydag\\.treespec\\b/pydag.dagspec/g; s/PyTreeSpec/PyDagSpec/g;
  s/(?<!def )(?<![.\\w])(pydag\\.)?tree(spec)?_(?!util\\b)/$1dag$2_/g;
  s/register_pytree_/register_pydag_/g' program.py
```

It leaves methods and JAX's names alone. If a program calls optree by another name (`import optree
as op`), write `import optree` first.

Unfolding what a function returns gives what optree's function returns for the unfolded arguments.
Functions of structures follow the same rule.
"""

_SAME = "optree's own object"
_ANCHOR = "the path of a shared leaf is its anchor's"
_ONCE = "each distinct leaf once"
_SPECS = "keeps the sharing inside each spec, and makes none between them"

SECTIONS: dict[str, dict[str, str]] = {
    "Taking apart and putting together": {
        "tree_flatten": "each distinct leaf once, in first-visit order; the spec knows the sharing",
        "tree_flatten_with_path": _ANCHOR,
        "tree_flatten_with_accessor": _ANCHOR,
        "tree_unflatten": "each shared node is built once",
        "tree_iter": "a leaf comes when it is first reached, and is kept alive until the end",
        "tree_leaves": _ONCE,
        "tree_structure": "structures with different sharing are unequal",
        "tree_paths": f"{_ANCHOR}; `all_paths=True` gives all of them",
        "tree_accessors": _ANCHOR,
        "tree_is_leaf": "one object: nothing is shared",
        "all_leaves": "each item by itself",
        "tree_flatten_one_level": "one node: its slots, shared or not",
    },
    "Mapping": {
        "tree_map": "the function runs once per distinct leaf; the result is shared as the tree is",
        "tree_map_": "an update in place happens once per distinct leaf",
        "tree_map_with_path": _ANCHOR,
        "tree_map_with_path_": _ANCHOR,
        "tree_map_with_accessor": _ANCHOR,
        "tree_map_with_accessor_": _ANCHOR,
        "tree_replace_nones": "None has no identity: each occurrence; the sentinel is then shared",
        "tree_partition": "asks once per distinct leaf; `dag_combine` gives the original again",
    },
    "Reducing": {
        "tree_reduce": _ONCE,
        "tree_sum": "each distinct leaf once: `[x, x, 2, 2]` has the array `x` once, and 2 twice",
        "tree_max": _ONCE,
        "tree_min": _ONCE,
        "tree_all": _ONCE,
        "tree_any": _ONCE,
    },
    "Broadcasting": {
        "tree_broadcast_prefix": "shared as the full tree; each object has one value",
        "broadcast_prefix": "one entry per distinct leaf of the full tree",
        "tree_broadcast_common": "each result keeps its own tree's sharing",
        "broadcast_common": "the sharing of the first tree; inside one of its leaves, of the other",
        "tree_broadcast_map": "the sharing of the first tree; one call per distinct leaf",
        "tree_broadcast_map_with_path": "as `tree_broadcast_map`",
        "tree_broadcast_map_with_accessor": "as `tree_broadcast_map`",
        "prefix_errors": "none where `broadcast_prefix` succeeds; conflicts of sharing last",
    },
    "Transposing": {
        "tree_transpose": "a node that is shared across the boundary raises a `SharingError`",
        "tree_transpose_map": "once per distinct leaf; the first output gives the inner structure",
        "tree_transpose_map_with_path": "as `tree_transpose_map`",
        "tree_transpose_map_with_accessor": "as `tree_transpose_map`",
    },
    "Structures": {
        "treespec_paths": _ANCHOR,
        "treespec_accessors": _ANCHOR,
        "treespec_entries": "of slots, aliases included",
        "treespec_entry": "of a slot",
        "treespec_children": "each is the structure of the child by itself",
        "treespec_child": "an alias whose anchor lies outside becomes the anchor",
        "treespec_one_level": "one leaf for each slot, never shared",
        "treespec_transform": "once per distinct node; sharing is put back by slot",
        "treespec_is_leaf": "about the root only",
        "treespec_is_strict_leaf": "about the root only",
        "treespec_is_one_level": "about the root's children",
        "treespec_is_prefix": "one object in the prefix must be one object in the other",
        "treespec_is_suffix": "the other way round",
        "treespec_leaf": "has nothing to share",
        "treespec_none": "has nothing to share",
        "treespec_tuple": _SPECS,
        "treespec_list": _SPECS,
        "treespec_dict": _SPECS,
        "treespec_namedtuple": _SPECS,
        "treespec_ordereddict": _SPECS,
        "treespec_defaultdict": _SPECS,
        "treespec_deque": _SPECS,
        "treespec_structseq": _SPECS,
        "treespec_frozendict": _SPECS,
        "treespec_from_collection": _SPECS,
    },
    "Registering": {
        "register_pytree_node": (
            "`preserve_relative_identities=False`: without identity; `.get`: either library's"
        ),
        "register_pytree_node_class": "the same",
        "unregister_pytree_node": "specs that were made before keep working",
        "dict_insertion_ordered": f"{_SAME}: one flag for both libraries",
    },
    "Entries, types, predicates": {
        "PyTreeSpec": "`PyDagSpec`: `num_shared`, `shared`, `num_paths`, `to_treespec()` are new",
        "PyTreeDef": "`PyDagSpec`, too",
        "MAX_RECURSION_DEPTH": "there is none: only memory bounds the depth of a structure",
    },
}

MODULES = {
    "optree.pytree": ("pydag.dag", "the functions without prefix, and `reexport`"),
    "optree.treespec": ("pydag.dagspec", "the constructors of structures without prefix"),
    "optree.accessors": ("pydag.accessors", _SAME + "s"),
    "optree.typing": ("pydag.typing", _SAME + "s, and `Dag`, `Leaf`, `Path`, `Where`"),
    "optree.functools": (
        "pydag.functools",
        "`partial` is optree's class; `reduce` is `dag_reduce`",
    ),
    "optree.dataclasses": (
        "pydag.dataclasses",
        "optree's decorators: their classes are nodes here",
    ),
    "optree.integrations.attrs": ("pydag.integrations.attrs", "the same for attrs"),
    "optree.integrations.numpy": (
        "pydag.integrations.numpy",
        "`dag_ravel`: each tied array is in it once",
    ),
    "optree.integrations.jax": ("pydag.integrations.jax", "the same for JAX"),
    "optree.integrations.torch": ("pydag.integrations.torch", "the same for PyTorch"),
}
"""optree's modules, pydag's, and what is to say."""


def complete_sections() -> dict[str, dict[str, str]]:
    """The sections with the names that are optree's own objects; ValueError for one left over."""
    said = {name for section in SECTIONS.values() for name in section}
    rest = {name: _SAME for name in optree.__all__ if name not in said}
    functions = [name for name in rest if name.startswith(("tree_", "treespec_", "register_"))]
    if functions:
        raise ValueError(f"nothing is said of {', '.join(functions)}: add it to {__file__}")
    sections = {title: dict(section) for title, section in SECTIONS.items()}
    sections["Entries, types, predicates"] |= rest
    return sections


def rows(section: dict[str, str]) -> list[str]:
    """The lines of a table: one for each note, with the names that it holds for."""
    names: dict[str, list[str]] = {}
    for name, note in section.items():
        if name in optree.__all__:
            names.setdefault(note, []).append(f"`{name}`")
    return [f"| {', '.join(found)} | {note} |" for note, found in names.items()]


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION.format(version=optree.__version__)]
    for title, section in complete_sections().items():
        lines += [f"## {title}\n", "| optree | with sharing |", "|---|---|", *rows(section), ""]
    lines += ["## Modules\n", "| optree | pydag | |", "|---|---|---|"]
    lines += [f"| `{theirs}` | `{ours}` | {note} |" for theirs, (ours, note) in MODULES.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) if sys.argv[1:] else PAGE).write_text(page(), "utf-8")
