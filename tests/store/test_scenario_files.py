"""Scenario files: found by name or path, refused with one line when they cannot be read."""

import os
from pathlib import Path

import pytest

from mlxcache_tui.core.scenario_check import ScenarioError
from mlxcache_tui.store.files import MAX_TEXT_BYTES
from mlxcache_tui.store.policies import load_policies
from mlxcache_tui.store.scenario_files import load_scenario, shipped_names

STEP = '[[steps]]\nuser = "q"\n'


def refused(wanted: Path | str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(str(wanted))
    return str(caught.value)


def test_a_file_and_the_policy_beside_it(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("返品規定", encoding="utf-8")
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf[policies]\np = { file = 'p.md' }\n" + STEP.encode())
    found = load_scenario(str(path))
    assert (found.name, found.source, found.policies["p"].text) == ("x", str(path), "返品規定")


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_scenario_is_right_and_says_what_it_shows(name: str) -> None:
    found = load_scenario(name)
    assert found.about
    assert "Shows:" in found.notes
    assert "Look at:" in found.notes


def test_a_name_that_does_not_ship() -> None:
    assert "did you mean return-policy?" in refused("retrun-policy")


def test_a_name_that_no_file_can_have() -> None:
    assert refused("~nosuchuser/x.toml").endswith("cannot be read: no home is known for ~nosuchuser")
    assert refused("x" * 300).endswith("cannot be read: file name too long")


def test_a_folder_does_not_hide_a_shipped_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "return-policy").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_scenario("return-policy").source == "return-policy.toml"


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.toml").endswith("none.toml: cannot be read: no such file or directory")
    (tmp_path / "folder.toml").mkdir()
    assert "is not a file" in refused(tmp_path / "folder.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    assert "is not a file" in refused(tmp_path / "pipe.toml")
    (tmp_path / "latin.toml").write_bytes("x = 1\ntitle = 'é'".encode("latin-1"))
    assert "is not UTF-8 (byte 0xe9 in line 2); save it as UTF-8" in refused(tmp_path / "latin.toml")
    (tmp_path / "big.toml").write_bytes(b"#" * (MAX_TEXT_BYTES + 1))
    assert "is 4.0 MB; expected a text of at most 4 MB" in refused(tmp_path / "big.toml")


def test_a_policy_that_cannot_be_read_is_a_mistake_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "sjis.md").write_bytes("返品".encode("shift_jis"))
    (tmp_path / "big.md").write_bytes(b"x" * 10_000_000)
    path = tmp_path / "x.toml"
    path.write_text("[policies]\na = { file = 'sjis.md' }\nb = { file = 'big.md' }\nc = { file = 'no.md' }\n" + STEP)
    lines = refused(path).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{path}:2", f"{path}:3", f"{path}:4"]
    assert "is not UTF-8" in lines[0]
    assert "is 10.0 MB" in lines[1]
    assert "no such file" in lines[2]


def test_a_scenario_and_the_composer_send_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLXCACHE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "own.txt").write_bytes(b"\xef\xbb\xbf\r\nOnly on\tFridays\x07.\r\n\r\n")
    (tmp_path / "own.toml").write_text("[policies]\nown = { file = 'policies/own.txt' }\n" + STEP)
    composer = {policy.label: policy.text for policy in load_policies()[0]}
    sent = [load_scenario(str(tmp_path / "own.toml")), *map(load_scenario, shipped_names())]
    texts = {(label, policy.text) for found in sent for label, policy in found.policies.items()}
    assert ("own", "Only on    Fridays␇.") in texts
    assert texts <= set(composer.items())
