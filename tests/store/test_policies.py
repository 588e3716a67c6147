"""Policies that ship and the person's own; files that cannot be one are told, not fatal."""

from pathlib import Path

import pytest

from mlxcache_tui.store.files import MAX_TEXT_BYTES
from mlxcache_tui.store.policies import FIRST, load_policies


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLXCACHE_CONFIG_DIR", str(tmp_path))
    folder = tmp_path / "policies"
    folder.mkdir()
    return folder


def test_the_shipped_ones_with_returns_first(own: Path) -> None:
    policies, problems = load_policies()
    labels = [policy.label for policy in policies]
    assert labels[: len(FIRST)] == list(FIRST)
    assert labels[len(FIRST) :] == sorted(labels[len(FIRST) :])
    assert {"warranty", "japanese-returns"} <= set(labels)
    assert all(policy.text and policy.text == policy.text.strip() for policy in policies)
    assert problems == ()


def test_own_policies_are_added_and_take_the_place_of_shipped_ones(own: Path) -> None:
    (own / "house.txt").write_text("\ufeffOnly on Fridays.\r\nNever on Mondays.\n", encoding="utf-8")
    (own / "returns.md").write_text("No returns.\n")
    (own / "notes.pdf").write_text("not a policy")
    policies, problems = load_policies()
    by_label = {policy.label: policy for policy in policies}
    assert by_label["house"].text == "Only on Fridays.\nNever on Mondays."
    assert by_label["returns"].text == "No returns."
    assert by_label["returns"].path == own / "returns.md"
    assert policies[0].label == "returns"
    assert "notes" not in by_label
    assert problems == ()


def test_what_cannot_be_a_policy_is_told_in_one_line_that_names_each(own: Path) -> None:
    (own / "a-latin1.md").write_bytes(b"caf\xe9")
    (own / "b-huge.md").write_bytes(b"x" * (MAX_TEXT_BYTES + 1))
    (own / "c-folder.md").mkdir()
    (own / "d-gone.md").symlink_to(own / "nowhere")
    (own / "e-empty.md").write_text(" \n")
    (own / "e-fine.md").write_text("fine")
    policies, problems = load_policies()
    assert "e-fine" in {policy.label for policy in policies}
    told = (
        "a-latin1.md is not UTF-8 (byte 0xe9 in line 1); save it as UTF-8",
        "b-huge.md is 4.0 MB; expected a text of at most 4 MB",
        "c-folder.md is not a file; expected a text file",
        "d-gone.md cannot be read: no such file or directory",
        "e-empty.md is empty",
    )
    assert problems == (f"5 policies left out: {'; '.join(told)} (in {own})",)


def test_many_that_cannot_be_policies_are_counted(own: Path) -> None:
    for number in range(8):
        (own / f"{number}.md").write_text("")
    (problem,) = load_policies()[1]
    assert problem.startswith("8 policies left out: 0.md is empty; 1.md is empty; ")
    assert problem.endswith(f"4.md is empty; and 3 more (in {own})")
    for number in range(1, 8):
        (own / f"{number}.md").unlink()
    assert load_policies()[1] == (f"policy left out: 0.md is empty (in {own})",)


def test_names_and_texts_come_in_clean(own: Path) -> None:
    (own / "red\x1b[31m\n.md").write_text("a\x1b]0;title\x07b\tc")
    (policy,) = [policy for policy in load_policies()[0] if policy.label.startswith("red")]
    assert policy.label == "red⏎"
    assert policy.text == "ab    c"


def test_a_settings_folder_that_cannot_be_made_leaves_the_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_CONFIG_DIR", str(tmp_path / "file"))
    policies, problems = load_policies()
    assert policies[0].label == "returns"
    assert len(problems) == 1
    assert "MLXCACHE_CONFIG_DIR" in problems[0]
