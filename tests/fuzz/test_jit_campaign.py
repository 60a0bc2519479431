# SPDX-License-Identifier: Apache-2.0
"""A short campaign against compiled calls, and that one finds what is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")

CAMPAIGN = Path(__file__).with_name("jit_campaign.py")


def campaign(*options: str, **variables: str) -> tuple[int, str]:
    """The exit status of a campaign, and what it says."""
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), *options],
        env=os.environ | {"PYTHONSAFEPATH": ""} | variables,  # its modules lie beside it
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_short_campaign_finds_nothing() -> None:
    """Compiled functions see what plain Python sees, and give the same in a new process."""
    status, said = campaign("--rounds", "8", "--cold", "1", "--seed", "1")
    assert status == 0, said
    assert "seed 1: 8 rounds" in said


BROKEN = {
    "an answer of an earlier call": (
        "        old.append(function(*args, **kwargs))\n        return old[0]\n",
        r"FOUND by seed 4, round 0: compiled with \{.*\} it sees\n  .*\nand in plain Python\n",
    ),
    "an error that a new function doesn't raise": (
        "        if len(old) == 3: raise TypeError('stale')\n"
        "        old.append(function(*args, **kwargs))\n        return old[-1]\n",
        r"FOUND by seed 4, round \d: .* it raises TypeError\('stale'\), and a new one doesn't",
    ),
    "an error that a new process doesn't raise": (
        "        count[0] += 1\n"
        "        if count[0] > 40: raise TypeError('stale')\n"
        "        return function(*args, **kwargs)\n",
        r"FOUND by seed 4, round [12]: call \d+ is\n  \['TypeError'\]\n"
        r"and in a process of its own\n  \[.tuple",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_wrong_is_found(how: str, tmp_path: Path) -> None:
    """What a compiled function remembers wrongly is reported, with the seed and the round."""
    answer, report = BROKEN[how]
    (tmp_path / "sitecustomize.py").write_text(
        "import pydag.jaxinterop as pj\n"
        "real, count = pj.jit, [0]\n"
        "def jit(function, **options):\n"
        "    function, old = real(function, **options), []\n"
        f"    def call(*args, **kwargs):\n{answer}"
        "    return call\n"
        "pj.jit = jit\n"
    )
    places = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    options = ["--rounds", "3", "--cold", "3", "--seed", "4"]
    status, said = campaign(*options, PYTHONPATH=os.pathsep.join(places))
    assert status == 1
    assert re.search(report, said), said
    assert re.search(r"alone: --seed 4 --first \d+ --rounds 1", said), said
