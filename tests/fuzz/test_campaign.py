# SPDX-License-Identifier: Apache-2.0
"""A short campaign, and that a campaign finds what is wrong and says how to see it again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).with_name("campaign.py")


def campaign(*options: str, **variables: str) -> tuple[int, str]:
    """The exit status of a campaign, and what it says."""
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), *options],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_short_campaign_finds_nothing() -> None:
    """Some hundred random rounds: the core agrees with the reference and survives bad input."""
    status, said = campaign("--rounds", "300", "--seconds", "500", "--seed", "1")
    assert status == 0, said
    assert "300 rounds, 0 findings" in said
    for name in ("trees_agree", "specs_agree", "hostile_trees", "pickles", "documents"):
        assert f" {name} " in said


BROKEN = {
    "difference": ("leaves.append(0)", r"FOUND by seed 3, round \d+, trees_agree: "),
    "sanitizer": ("os._exit(1)", r"FOUND by seed 3: round \d+ ended with 1"),
    "crash": ("os.abort()", r"FOUND by seed 3: round \d+ ended with -6"),
    "hang": ("time.sleep(60)", r"FOUND by seed 3: round \d+ hung"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_wrong_is_found(how: str, tmp_path: Path) -> None:
    """A wrong answer, a crash, a sanitizer's report and a hang: with the seed and the round."""
    what, report = BROKEN[how]
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "if '--progress' in sys.argv:\n"
        "    import pydag\n"
        "    flatten = pydag.dag_flatten\n"
        "    def broken(*args, **options):\n"
        "        leaves, spec = flatten(*args, **options)\n"
        f"        if len(leaves) == 3: {what}\n"
        "        return leaves, spec\n"
        "    pydag.dag_flatten = broken\n"
    )
    options = ["--only", "trees_agree", "--seed", "3", "--findings", "1", "--seconds", "300"]
    options += ["--patience", "2"] if how == "hang" else []
    places = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    status, said = campaign(*options, PYTHONPATH=os.pathsep.join(places))
    assert status != 0
    found = re.search(report, said)
    assert found, said
    [again] = re.findall(r"(?:again|alone): (.*)", said)
    assert re.fullmatch(r"--seed 3 --first \d+ --rounds 1", again)
