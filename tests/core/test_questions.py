"""The prepared questions fit the policies that ship."""

from pathlib import Path

from mlxcache_tui.core.questions import BY_POLICY, RETURNS, questions_for

POLICIES = Path(__file__).parents[2] / "scenarios" / "policies"


def test_every_question_list_belongs_to_a_shipped_policy_and_the_other_way_round() -> None:
    assert {path.stem for path in POLICIES.glob("*.md")} == set(BY_POLICY)


def test_the_return_questions_come_in_the_order_of_the_first_run() -> None:
    labels = [question.label for question in questions_for("returns")]
    assert labels == ["changed mind", "arrived damaged", "no receipt", "unopened after 40 days"]


def test_a_policy_of_the_persons_own_gets_the_return_questions() -> None:
    assert questions_for("my own") is RETURNS


def test_labels_and_texts_are_not_repeated_within_a_policy() -> None:
    for questions in BY_POLICY.values():
        assert len({question.text for question in questions}) == len(questions) >= 4
        assert len({question.label for question in questions}) == len(questions)


def test_the_return_policy_has_the_three_rules_and_asks_for_the_rule_and_a_reason() -> None:
    text = (POLICIES / "returns.md").read_text()
    assert "unopened accessory can be returned within 30 days of delivery with a proof of purchase" in text
    assert "opened accessory can be returned only if it arrived damaged" in text
    assert "first the rule of the policy that applies" in text
    assert "then a short reason" in text
