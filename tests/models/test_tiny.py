"""The three random model families, as the installed mlx-lm sees them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.models.fetch import DemoProgress, Kind, ensure_demo_model

pytestmark = [
    pytest.mark.mlx,
    # warnings of the libraries that mlx-lm imports, not ours
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

MESSAGES = [
    {"role": "system", "content": "Unopened accessories may be returned within 30 days. 未開封なら返品可 🙂"},
    {"role": "user", "content": "Can I return it?"},
]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Kind], Path]:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path))

    def make(kind: Kind) -> Path:
        return ensure_demo_model(kind, python=Path(sys.executable), report=lambda _: None)

    return make


def loaded(folder: Path) -> tuple[Any, Any]:
    from mlx_lm import load

    model, tokenizer = load(str(folder))[:2]
    return model, tokenizer


def answer(model: Any, tokenizer: Any, prompt: list[int], cache: list[Any], tokens: int) -> list[int]:
    from mlx_lm import stream_generate

    return [piece.token for piece in stream_generate(model, tokenizer, prompt, max_tokens=tokens, prompt_cache=cache)]


def test_plain_family_has_caches_that_can_be_trimmed(made: Callable[[Kind], Path]) -> None:
    from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache

    model, tokenizer = loaded(made("tiny"))
    prompt = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True)
    cache = make_prompt_cache(model)
    tokens = answer(model, tokenizer, prompt, cache, 80)
    assert len(tokens) == 80, "an answer never ends by itself"
    assert can_trim_prompt_cache(cache)
    assert not tokenizer.has_thinking
    assert tokenizer.decode(tokens).replace(" ", "").isalpha(), "and is made of words"


def test_tokenizer_gives_text_back_unchanged(made: Callable[[Kind], Path]) -> None:
    _, tokenizer = loaded(made("tiny"))
    prompt = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True)
    assert tokenizer.decode(prompt) == (
        "<|im_start|>system\nUnopened accessories may be returned within 30 days. 未開封なら返品可 🙂<|im_end|>\n"
        "<|im_start|>user\nCan I return it?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert 1700 < len(tokenizer) <= 2000


def test_thinking_family_opens_a_block_and_closes_it_on_request(made: Callable[[Kind], Path]) -> None:
    _, tokenizer = loaded(made("tiny-thinking"))
    assert tokenizer.has_thinking
    assert len(tokenizer.think_start_tokens) == len(tokenizer.think_end_tokens) == 1
    on = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True)
    off = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, enable_thinking=False)
    assert tokenizer.decode(on).endswith("<|im_start|>assistant\n<think>\n")
    assert tokenizer.decode(off).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_sliding_family_cannot_be_trimmed_once_its_window_has_wrapped(made: Callable[[Kind], Path]) -> None:
    from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache

    model, tokenizer = loaded(made("tiny-sliding"))
    cache = make_prompt_cache(model)
    answer(model, tokenizer, tokenizer.encode("Can I return it?"), cache, 4)
    assert can_trim_prompt_cache(cache)
    answer(model, tokenizer, tokenizer.encode("and why? " * 40), cache, 4)
    assert not can_trim_prompt_cache(cache)


def test_two_runs_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []
    for name in ("one", "two"):
        monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path / name))
        folders.append(ensure_demo_model("tiny-thinking", python=Path(sys.executable), report=lambda _: None))
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == sorted(path.name for path in folders[1].iterdir())
    assert [(folders[0] / n).read_bytes() for n in names] == [(folders[1] / n).read_bytes() for n in names]


def test_progress_ends_with_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path))
    said: list[DemoProgress] = []
    ensure_demo_model("tiny", python=Path(sys.executable), report=said.append)
    assert [step.stage for step in said] == ["making"] * (len(said) - 1) + ["ready"]
    assert all("\n" not in step.text for step in said)
