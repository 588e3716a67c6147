"""SmolLM2: the conversion's parts on made-up metadata, and the real thing fetched (marker: network)."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.models import fetch
from mlxcache_tui.models.fetch import DemoProgress, ensure_demo_model

pytestmark = [
    pytest.mark.mlx,
    # warnings of the libraries that mlx-lm imports, not ours
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def metadata(**changes: Any) -> dict[str, Any]:
    """The tokenizer part of a file: all bytes, three control tokens, one merge."""
    import mlx.core as mx
    from tokenizers import pre_tokenizers

    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "in"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": mx.array([3, 3, 3] + [1] * 257),
        "tokenizer.ggml.merges": ["i n"],
        "tokenizer.ggml.bos_token_id": mx.array(1),
        "tokenizer.ggml.eos_token_id": mx.array(2),
        **changes,
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("token_embd.scales", "model.embed_tokens.scales"),
        ("output_norm.weight", "model.norm.weight"),
        ("blk.3.attn_q.biases", "model.layers.3.self_attn.q_proj.biases"),
        ("blk.29.ffn_norm.weight", "model.layers.29.post_attention_layernorm.weight"),
    ],
)
def test_names(theirs: str, ours: str) -> None:
    from mlxcache_tui.models.scripts.smollm2 import mlx_name

    assert mlx_name(theirs) == ours


def test_tokenizer_from_metadata_merges_and_splits_digits() -> None:
    from mlxcache_tui.models.scripts.smollm2 import check_tokenizer, make_tokenizer

    tokenizer = make_tokenizer(metadata())
    check_tokenizer(tokenizer, metadata())
    assert tokenizer.encode("in 30<|im_end|>").tokens == ["in", "Ġ", "3", "0", "<|im_end|>"]


def test_other_tokenizer_is_refused() -> None:
    import mlx.core as mx

    from mlxcache_tui.models.scripts.smollm2 import WrongResultError, check_tokenizer, make_tokenizer

    with pytest.raises(WrongResultError, match="another kind"):
        make_tokenizer(metadata(**{"tokenizer.ggml.pre": "llama-bpe"}))
    no_control = metadata(**{"tokenizer.ggml.token_type": mx.array([1] * 260)})
    with pytest.raises(WrongResultError, match="not one token"):
        check_tokenizer(make_tokenizer(no_control), no_control)


def test_float32_weights_are_the_quantized_ones_spelled_out() -> None:
    import mlx.core as mx

    from mlxcache_tui.models.scripts.smollm2 import make_weights

    full = mx.random.normal((8, 64), key=mx.random.key(1))
    weight, scales, biases = mx.quantize(full, group_size=32, bits=4)
    file = {
        "blk.0.attn_q.weight": weight,
        "blk.0.attn_q.scales": scales.astype(mx.float16),
        "blk.0.attn_q.biases": biases.astype(mx.float16),
        "blk.0.attn_norm.weight": mx.ones(64),
    }
    plain = make_weights(file, quantized=False)
    assert {name: (value.shape, value.dtype) for name, value in plain.items()} == {
        "model.layers.0.self_attn.q_proj.weight": ((8, 64), mx.float32),
        "model.layers.0.input_layernorm.weight": ((64,), mx.float32),
    }
    assert mx.allclose(plain["model.layers.0.self_attn.q_proj.weight"], full, atol=0.5).item()
    kept = make_weights(file, quantized=True)
    assert kept["model.layers.0.self_attn.q_proj.weight"].dtype == mx.uint32
    assert kept["model.layers.0.input_layernorm.weight"].dtype == mx.float16


@pytest.mark.network
def test_fetched_model_answers_in_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path))
    said: list[DemoProgress] = []
    folder = ensure_demo_model("smollm2", python=Path(sys.executable), report=said.append)
    assert list(dict.fromkeys(step.stage for step in said)) == ["fetching", "checking", "converting", "ready"]
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["smollm2", "smollm2.lock"]

    from mlx_lm import generate, load

    model, tokenizer = load(str(folder))[:2]
    assert len(tokenizer) == 49152
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True)
    assert "Paris" in generate(model, tokenizer, prompt, max_tokens=16)


@pytest.mark.network
def test_download_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path))
    cancel = threading.Event()

    def on_progress(step: DemoProgress) -> None:
        if step.done_bytes:
            cancel.set()

    with pytest.raises(fetch.DemoModelCancelledError):
        ensure_demo_model("smollm2", python=Path(sys.executable), report=on_progress, cancel=cancel)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["smollm2.lock"]
