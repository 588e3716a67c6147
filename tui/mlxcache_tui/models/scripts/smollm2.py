"""Turns SmolLM2-135M-Instruct.Q4_1.gguf into a folder that mlx-lm loads.

Runs under the server's Python, not under ours: standard library, mlx and tokenizers only. Says what it does in JSON
lines on standard output; ends with status 1 and one line on standard error when the result is not right.

    python smollm2.py --gguf FILE --out FOLDER --weights q4|float32

`q4` keeps what is in the file: 4 bit in groups of 32, the embedding 8 bit. `float32` is for CPUs, where mlx's quantized
and half precision arithmetic are unusably slow.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

GROUP = 32
BITS = 4
EMBEDDING_BITS = 8
EMBEDDING = "model.embed_tokens"
CONTROL_TOKEN = 3  # in tokenizer.ggml.token_type

# llama.cpp's names for the parts of a llama, and Hugging Face's
PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# text, and how its digits must come apart
PROBE = "Return policy: 30 days, order №1024 — “unopened” only.\n\tNaïve café 日本語 🙂"
PROBE_DIGITS = ["3", "0", "1", "0", "2", "4"]


class WrongResultError(Exception):
    """The file is not the model that this script knows."""


def say(stage: str, text: str) -> None:
    """One progress line for the program that started us."""
    print(json.dumps({"stage": stage, "text": text}), flush=True)


def mlx_name(gguf_name: str) -> str:
    """`blk.3.attn_q.scales` -> `model.layers.3.self_attn.q_proj.scales`."""
    *path, kind = gguf_name.split(".")
    if path == ["token_embd"]:
        return f"{EMBEDDING}.{kind}"
    if path == ["output_norm"]:
        return f"model.norm.{kind}"
    _, layer, part = path
    return f"model.layers.{layer}.{PARTS[part]}.{kind}"


def make_config(meta: dict[str, Any], *, quantized: bool) -> dict[str, Any]:
    def number(key: str) -> Any:
        return meta[f"llama.{key}"].item()

    config: dict[str, Any] = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": number("embedding_length"),
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": number("attention.head_count"),
        "num_key_value_heads": number("attention.head_count_kv"),
        "max_position_embeddings": number("context_length"),
        "vocab_size": number("vocab_size"),
        "rms_norm_eps": number("attention.layer_norm_rms_epsilon"),
        "rope_theta": number("rope.freq_base"),
        # GGUF stores the query and key rows of a llama in the order of interleaved rotation
        "rope_traditional": True,
        "tie_word_embeddings": True,
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"].item(),
        "torch_dtype": "float16" if quantized else "float32",
    }
    if quantized:
        embedding = {"group_size": GROUP, "bits": EMBEDDING_BITS}
        config["quantization"] = {"group_size": GROUP, "bits": BITS, EMBEDDING: embedding}
    return config


def make_weights(weights: dict[str, Any], *, quantized: bool) -> dict[str, Any]:
    """Weights under the names mlx-lm expects, as they are or in float32."""
    named = {mlx_name(name): value for name, value in weights.items()}
    if quantized:
        # the norms are float32 in the file and would lift all arithmetic to float32
        return {name: value if value.dtype == mx.uint32 else value.astype(mx.float16) for name, value in named.items()}
    plain = {}
    for name, value in named.items():
        layer, kind = name.rsplit(".", 1)
        if kind != "weight":
            continue
        if f"{layer}.scales" in named:
            scales, biases = (named[f"{layer}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            bits = EMBEDDING_BITS if layer == EMBEDDING else BITS
            value = mx.dequantize(value, scales, biases, group_size=GROUP, bits=bits)
        plain[name] = value.astype(mx.float32)
    return plain


def make_tokenizer(meta: dict[str, Any]) -> Tokenizer:
    """A byte-level BPE behind a splitter that takes digits one by one (`tokenizer.ggml.pre` = smollm)."""
    if (meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        raise WrongResultError("the file's tokenizer is of another kind")
    tokens = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = meta["tokenizer.ggml.token_type"].tolist()
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


def check_tokenizer(tokenizer: Tokenizer, meta: dict[str, Any]) -> None:
    """Raises WrongResultError unless text comes back, digits come apart and control tokens are one token each."""
    encoded = tokenizer.encode(PROBE, add_special_tokens=False)
    if tokenizer.decode(encoded.ids, skip_special_tokens=False) != PROBE:
        raise WrongResultError("the tokenizer does not give a text back")
    if [token for token in encoded.tokens if token.strip("Ġ").isdigit()] != PROBE_DIGITS:
        raise WrongResultError("the tokenizer does not split digits")
    for key in ("bos", "eos"):
        number = meta[f"tokenizer.ggml.{key}_token_id"].item()
        token = meta["tokenizer.ggml.tokens"][number]
        if tokenizer.encode(token, add_special_tokens=False).ids != [number]:
            raise WrongResultError(f"{token} is not one token")
    if tokenizer.get_vocab_size() != len(meta["tokenizer.ggml.tokens"]):
        raise WrongResultError("the vocabulary has another size")


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(gguf: Path, out: Path, *, quantized: bool) -> None:
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json into `out`."""
    say("converting", "reading the file")
    loaded: Any = mx.load(str(gguf), return_metadata=True)
    weights, meta = loaded
    out.mkdir(parents=True, exist_ok=True)
    say("converting", "tokenizer")
    tokenizer = make_tokenizer(meta)
    check_tokenizer(tokenizer, meta)
    tokenizer.save(str(out / "tokenizer.json"))
    tokens = meta["tokenizer.ggml.tokens"]
    named = {
        f"{name}_token": tokens[meta[f"tokenizer.ggml.{key}_token_id"].item()]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
    }
    write_json(
        out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **named,
            "model_max_length": meta["llama.context_length"].item(),
            "clean_up_tokenization_spaces": False,
            "chat_template": meta["tokenizer.chat_template"],
        },
    )
    write_json(out / "config.json", make_config(meta, quantized=quantized))
    say("converting", "weights as they are (4 bit)" if quantized else "weights to float32, fastest on a CPU")
    mx.save_safetensors(
        str(out / "model.safetensors"), make_weights(weights, quantized=quantized), metadata={"format": "mlx"}
    )
    say("ready", "done")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", choices=["q4", "float32"], required=True)
    options = parser.parse_args()
    try:
        convert(options.gguf, options.out, quantized=options.weights == "q4")
    except (WrongResultError, KeyError) as error:
        sys.exit(f"{options.gguf.name} is not the model expected: {error}")


if __name__ == "__main__":
    main()
