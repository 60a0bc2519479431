# SPDX-License-Identifier: Apache-2.0
"""Workloads at which a fast library may be slow, in one table: ours, the other, ratio, target.

    python benchmarks --only cliffs [--quick] [--before benchmarks/results.json]

measures all of them and prints the table, with the ratios of an earlier run if one is given. To
add rows: a module with a function `rows(peers, effort) -> list[Row]` (rows.py says what a row is;
`peers` has the libraries that are installed, `effort.quick` asks for smaller sizes), named in
`MODULES` below.
"""

from collections.abc import Callable

import deep_copies
import functions
import imports
import many_arrays
import odd_classes
import odd_trees
import quiet_steps
import small_calls
import structure_walks
import whole_steps
from peers import Peers
from records import Task
from rows import Row
from timing import Effort

MODULES: tuple[Callable[[Peers, Effort], list[Row]], ...] = (
    odd_classes.rows,
    odd_trees.rows,
    small_calls.rows,
    structure_walks.rows,
    functions.rows,
    many_arrays.rows,
    deep_copies.rows,
    imports.rows,
    quiet_steps.rows,
    whole_steps.rows,
)


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each row."""
    return [row.task(effort) for rows in MODULES for row in rows(peers, effort)]
