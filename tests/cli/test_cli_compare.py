"""`compare` as a command: what it reads, where it writes, and its exit status."""

import json
from pathlib import Path

import pytest

from mlxcache_tui.cli.main import main
from mlxcache_tui.core.compare import TOO_FEW
from mlxcache_tui.report.json import to_json
from support.fake_engine import FakeEngine
from support.scenario_runs import TWO_QUESTIONS, run_of
from support.sessions import told, write


def run_file(folder: Path, cache: int, text: str = TWO_QUESTIONS) -> str:
    path = folder / f"{cache}-{len(text)}.json"
    result, _ = run_of(text, FakeEngine(cache=cache), None)
    whole = json.loads(to_json([result], several=False))
    whole["server"]["flags"]["prompt_cache_size"] = cache
    path.write_text(json.dumps(whole))
    return str(path)


def test_worse_is_1_and_no_worse_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steady = TWO_QUESTIONS.replace('user = "It is opened."', 'users = ["1", "2", "3"]').replace(
        '"It came damaged.", "It is *opened*.", "Is it <late>?"', '"4", "5", "6"'
    )
    ten, one = run_file(tmp_path, 10), run_file(tmp_path, 1)
    assert main(["compare", ten, one]) == 1
    assert "B is worse than A" in capsys.readouterr().out
    same = run_file(tmp_path, 10, steady)
    assert main(["compare", same, same]) in (0, 4)


def test_the_help_says_the_same_of_times_as_the_note(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert TOO_FEW in " ".join(capsys.readouterr().out.split())


def test_inconclusive_is_4(tmp_path: Path) -> None:
    path = Path(run_file(tmp_path, 10))
    whole = json.loads(path.read_text())
    whole["requests"] = whole["requests"][:2]
    path.write_text(json.dumps(whole))
    assert main(["compare", str(path), str(path)]) == 4


def test_sessions_are_compared_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path / "a.jsonl", told(size=10))
    b = write(tmp_path / "b.jsonl", told(size=1))
    assert main(["compare", str(a), str(b), "--json", "-"]) == 0
    out = capsys.readouterr()
    whole = json.loads(out.out)
    assert whole["differences"] == {"prompt_cache_size": [10, 1]}
    assert "over all steps" in out.err
    b.write_bytes(b.read_bytes()[:-3])
    assert main(["compare", str(a), str(b)]) == 0
    assert "has no end" in capsys.readouterr().err


def test_several_files_make_a_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, 10)
    assert main(["compare", f"{path},{path},{path}", f"{path},{path},{path}", "--json", "-"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert {tuple(metric["n"]) for metric in whole["metrics"] if metric["metric"] == "memory_peak_bytes"} == {(3, 3)}


def test_refused_and_bad_input_are_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, 10)
    other = run_file(tmp_path, 10, TWO_QUESTIONS.replace("damaged", "broken"))
    assert main(["compare", path, other]) == 2
    assert "not compared: the two differ in scenario" in capsys.readouterr().out
    assert main(["compare", path, other, "--changed", "scenario"]) in (0, 4)
    assert main(["compare", path, str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read: no such file" in capsys.readouterr().err
    (tmp_path / "x.json").write_text("{")
    assert main(["compare", path, str(tmp_path / "x.json")]) == 2
    assert "x.json: no run JSON" in capsys.readouterr().err
    assert main(["compare", path, path, "--json", "-", "--markdown", "-"]) == 2
    assert main(["compare", path, path, "--json", str(tmp_path / "no" / "x")]) == 2


def test_a_report_in_markdown(tmp_path: Path) -> None:
    path = run_file(tmp_path, 10)
    target = tmp_path / "report.md"
    assert main(["compare", path, path, "--markdown", str(target)]) in (0, 4)
    assert target.read_text().startswith("# ")
