"""Each figure from known stamps, and what leaves it blank."""

import pytest

from mlxcache_tui.core import metrics
from mlxcache_tui.core.state import RequestState, Stamps

MS = 1_000_000


def request(stamps: Stamps, **figures: int | str | None) -> RequestState:
    made = RequestState(
        key="a",
        number=1,
        purpose="send",
        path="/v1/chat/completions",
        messages=(),
        params={},
        policy="p",
        ours=True,
        composed_ns=0,
        epoch=1,
        outcome="done",
    )
    made.client = stamps
    for name, value in figures.items():
        setattr(made, name, value)
    return made


FULL = Stamps(
    sent=0, admitted=100 * MS, first_token=600 * MS, first_answer=900 * MS, finish=1_600 * MS, ended=1_700 * MS
)


def test_all_times_of_a_whole_request() -> None:
    made = request(FULL, prompt_tokens=1_100, cached_tokens=100, output_tokens=11)
    assert metrics.wait_s(made) == pytest.approx(0.1)
    assert metrics.ttft_s(made) == pytest.approx(0.6)
    assert metrics.ttfo_s(made) == pytest.approx(0.9)
    assert metrics.prefill_s(made) == pytest.approx(0.5)
    assert metrics.prefill_tps(made) == pytest.approx(2_000)
    assert metrics.decode_tps(made) == pytest.approx(10)
    assert metrics.e2e_s(made) == pytest.approx(1.6)
    assert metrics.cached_ratio(made) == pytest.approx(1 / 11)


def test_few_uncached_tokens_give_no_prefill_rate() -> None:
    made = request(FULL, prompt_tokens=163, cached_tokens=100)
    assert metrics.prefill_tps(made) is None


def test_what_was_read_at_once_gives_no_rate() -> None:
    at_once = Stamps(sent=0, admitted=20 * MS, first_token=20 * MS + 150_000, finish=21 * MS)
    made = request(at_once, prompt_tokens=332, cached_tokens=6, output_tokens=16)
    assert metrics.prefill_tps(made) is None
    assert metrics.decode_tps(made) is None


def test_tokens_that_came_in_one_burst_give_no_decode_rate() -> None:
    burst = Stamps(sent=0, admitted=20 * MS, first_token=300 * MS, finish=310 * MS)
    assert metrics.decode_tps(request(burst, output_tokens=64)) is None
    assert metrics.decode_tps(request(burst, output_tokens=11)) == pytest.approx(1_000)


@pytest.mark.parametrize("output", [None, 0, 1])
def test_fewer_than_two_tokens_give_no_decode_rate(output: int | None) -> None:
    assert metrics.decode_tps(request(FULL, output_tokens=output)) is None


def test_unknown_stays_unknown() -> None:
    made = request(Stamps(sent=0, finish=5 * MS))
    for metric in (metrics.ttft_s, metrics.wait_s, metrics.prefill_s, metrics.cached_ratio, metrics.prefill_tps):
        assert metric(made) is None
    assert metrics.e2e_s(made) == pytest.approx(0.005)


@pytest.mark.parametrize("outcome", ["failed", "cut", "cancelled"])
def test_what_was_not_done_has_no_completion_time(outcome: str) -> None:
    assert metrics.e2e_s(request(FULL, outcome=outcome)) is None


def test_the_time_left_follows_the_speed_so_far() -> None:
    made = request(Stamps(sent=0, admitted=0), prefill_done=1_000, prefill_total=4_000, prefill_ns=2_000 * MS)
    assert metrics.eta_s(made) == pytest.approx(6)
