"""Run the live tests of the observer and of the cache's truth against other releases of mlx-lm; print a Markdown table.

    uv run python tests/matrix.py [--python PYTHON] [--count N] [--seed N] [VERSION …]

Each version gets a virtual environment of its own in the cache folder, outside the repository (kept for the next time),
made for `--python` (default: the one that runs this; give another one to test a server whose Python is not the
viewer's). The tests find the server's interpreter in `MLXCACHE_SERVER_PYTHON`. `--count` is the number of requests that
each truth test sends. Progress goes to standard error, the whole output of each version to a file beside its
environment. The exit status is 1 if anything failed.
"""

import argparse
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from mlxcache_tui.models.fetch import cache_folder

VERSIONS = ("0.31.1", "0.31.2", "0.31.3", "0.32.0", "0.32.2")
MLX = {"0.31.1": "0.31.1", "0.31.2": "0.31.1"}
"""Versions whose generation thread dies on a newer mlx ("There is no Stream(cpu, 0) in current thread")."""
ROOT = Path(__file__).parents[1]
GROUPS = ("test_observer.py", "test_observer_cache.py", "test_observer_process.py", "test_reasons.py")
TRUTH = ("test_truth.py", "test_cachemodel_live.py")
TOLD = re.compile(r"(MLXCACHE_TRUTH_SEED=.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one version."""

    version: str
    mlx: str
    python: str
    observer: str
    truth: str
    failed: tuple[str, ...]
    told: tuple[str, ...]


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def environment(version: str, python: str, folder: Path) -> Path:
    """The interpreter that has this version; installed the first time."""
    home = folder / f"{version}-{re.sub(r'[^0-9A-Za-z]+', '-', python).strip('-')}"
    found = home / "bin" / "python"
    if (home / "ready").exists():
        return found
    subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", python, str(home)], check=True)
    extra = "[cpu]" if sys.platform == "linux" else ""
    wanted = [f"mlx-lm{extra}=={version}"]
    if version in MLX:
        wanted.append(f"mlx{extra}=={MLX[version]}")
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(found), *wanted], check=True)
    (home / "ready").touch()
    return found


def versions_of(python: Path) -> tuple[str, str]:
    """The versions of mlx and of Python itself."""
    code = "import importlib.metadata as m, platform; print(m.version('mlx'), platform.python_version())"
    told = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return told[0], told[1]


def run(version: str, python: Path, folder: Path, count: int, seed: int) -> Row:
    """Run the tests of one version."""
    say(f"{version}: running")
    report, output = folder / f"{version}.xml", folder / f"{version}.txt"
    files = [str(path) for name in (*GROUPS, *TRUTH) if (path := ROOT / "tests" / "live" / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-n", "0", f"--junitxml={report}", *files]
    env = os.environ | {
        "MLXCACHE_SERVER_PYTHON": str(python),
        "MLXCACHE_CACHE_DIR": str(folder / f"models-{version}"),
        "MLXCACHE_TRUTH_COUNT": str(count),
        "MLXCACHE_TRUTH_SEED": str(seed),
    }
    with output.open("wb") as file:
        subprocess.run(command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT, check=False)
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    of_truth = [case for case in cases if "test_truth" in case.get("classname", "") or "cachemodel" in str(case.attrib)]
    others = [case for case in cases if case not in of_truth]
    mlx, own = versions_of(python)
    return Row(
        version=version,
        mlx=mlx,
        python=own,
        observer=passed(others),
        truth=passed(of_truth),
        failed=tuple(f"{case.get('classname')}::{case.get('name')}" for case in failed),
        told=tuple(TOLD.findall(output.read_text("utf-8", "replace"))),
    )


def passed(cases: list[ElementTree.Element]) -> str:
    """`12 of 12`, and how many were left out."""
    skipped = sum(case.find("skipped") is not None for case in cases)
    bad = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    text = f"{len(cases) - skipped - bad} of {len(cases) - skipped}"
    return f"{text} ({skipped} do not apply)" if skipped else text


def main() -> int:
    """See the module's first lines."""
    parser = argparse.ArgumentParser(description="Run the live tests against other releases of mlx-lm.")
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--python", default=sys.executable, help="Python of the servers")
    parser.add_argument("--count", type=int, default=60, help="requests of each truth test")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    folder = cache_folder() / "matrix"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows = [run(v, environment(v, given.python, folder), folder, given.count, given.seed) for v in given.versions]
    lines = [
        "| mlx-lm | mlx | server's Python | observer and reasons | truth and model |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {r.version} | {r.mlx} | {r.python} | {r.observer} | {r.truth} |" for r in rows]
    for row in rows:
        lines += [
            "",
            f"{row.version}:",
            *(f"- {text}" for text in row.told),
            *(f"- FAILED {name}" for name in row.failed),
        ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(row.failed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
