# SPDX-License-Identifier: Apache-2.0
"""What all tests need: the installed package, and not the sources in the current directory."""

import gc
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest puts this folder there, in which tests/jax would be found as `jax` where JAX is missing.
sys.path.remove(str(Path(__file__).parent))

if importlib.util.find_spec("pydag._core") is None:
    raise ImportError(
        "the compiled core of pydag is missing: `make test` builds and installs the package. "
        "(`python -m pytest` finds the sources instead of the installed package; run `pytest`.)"
    )

# The same for the interpreters that tests start: `python -c` would look here first.
os.environ["PYTHONSAFEPATH"] = "1"

# Their tests import them at the top.
collect_ignore_glob = [
    f"{library}/test_*.py"
    for library in ("jax", "torch")
    if importlib.util.find_spec(library) is None
]

# Most of the time of the tests with JAX is XLA's. So what was compiled is kept for the next run,
# under a key that has all that it depends on; and LLVM optimizes nothing, since what is compiled
# here runs once or twice. Whoever sets one of these variables gets what it says.
compiled = str(Path(__file__).parents[1] / "out" / "compiled-by-jax")
for name, value in {
    "JAX_COMPILATION_CACHE_DIR": compiled,
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}.items():
    os.environ.setdefault(name, value)

# Each process keeps its own: JAX warns if it reads what another one is writing at that moment, and
# a test that asks for all warnings, or for none, would fail. Workers inherit the variable.
if os.environ["JAX_COMPILATION_CACHE_DIR"] == compiled:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(compiled, worker))

# How long an example takes says how busy the machine is. And the examples are the same in each run:
# one that fails fails again. `--hypothesis-profile=search` takes new ones each time.
search = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", search)
settings.register_profile("same", search, derandomize=True)
# The sanitizers take this one: an example costs them many times as much, and what the tests claim
# is shown by the other runs.
settings.register_profile("few", search, derandomize=True, max_examples=20)
settings.load_profile("same")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may write a file."""
    return tmp_path / "model.safetensors"


# What plain JAX can't do either with its coming implementations, which a variable switches on.
JAX_CANNOT = {
    ("JAX_REMAT3", "test_a_ref_is_one_object_and_written_once[grad of checkpoint]"): (
        "no derivative of a checkpointed function with a jitted one that writes integers"
    ),
    ("JAX_CUSTOM_VJP3", "test_types_of_errors[a cotangent of another form]"): "a ValueError",
    ("JAX_CUSTOM_JVP3", "test_the_rule_counts_for_a_ref[ten_times_forward-"): "no refs made inside",
    ("JAX_CUSTOM_JVP3", "test_a_function_that_writes"): "no refs made inside",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the GIL CPython 3.13 keeps all classes once a thread has started: those go first."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        items.sort(key=lambda item: item.get_closest_marker("classes_die") is None)
    for (variable, name), reason in JAX_CANNOT.items():
        for item in items if os.environ.get(variable) == "1" else ():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.skip(reason=f"JAX with {variable}: {reason}"))


# Behind how many tests what they left is put where a collection doesn't look.
_TESTS_BETWEEN_FREEZES = 50

_num_tests = 0


def pytest_collection_finish() -> None:
    """Collections of garbage pass over what the tests import: with JAX and its kin that is much."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    """And over what JAX keeps of the tests before: else a collection takes longer with each."""
    global _num_tests  # tests run one after another
    _num_tests += 1
    if _num_tests % _TESTS_BETWEEN_FREEZES == 0:
        gc.collect()
        gc.freeze()
