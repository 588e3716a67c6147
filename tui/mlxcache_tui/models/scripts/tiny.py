"""Makes a random-weight model folder of 1.4 MB: its text is noise, its cache behaviour is real.

Runs under the server's Python, not under ours: standard library, numpy, safetensors and tokenizers only (mlx-lm brings
them). Says what it does in JSON lines on standard output.

    python tiny.py --family llama|thinking|sliding --out FOLDER

`llama` keeps plain KV caches, which can be trimmed. `thinking` is the same behind a chat template that opens a
`<think>` block, and closes it at once when `enable_thinking` is false. `sliding` is a gemma3 whose caches can no
longer be trimmed once its 64-token window has wrapped: the stand-in for gemma3, gpt-oss and the hybrids.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 2000
HIDDEN = 64
MLP = 128
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 16
CONTEXT = 32768
SEED = 20260217
END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

# Enough words for a vocabulary near 2000, so that a policy costs not many more tokens per word than with a real one.
CORPUS = """
Accessories that are unopened may be returned within thirty days of delivery with a proof of purchase. Opened
accessories may be returned only if they arrived damaged, and the damage must be reported within seven days. A proof
of purchase is a receipt, an order number or an invoice that shows the date and the price. Refunds are paid to the
original payment method within ten working days after the parcel has reached our warehouse. Shipping costs are
refunded only when the mistake was ours. The customer pays for the return label unless the product was faulty,
incomplete or not as described on the page. A customer opened an accessory and changed their mind. Can they return
it? The package arrived damaged and the cable does not work. What should I do now? I bought two adapters last month,
one of them is still sealed. May I send it back? Please tell me which sentence of the policy applies and give one
short reason for your answer. You are a support assistant. Answer with the relevant sentence from the policy. If the
policy does not say, write that you do not know and ask for details. The warranty covers defects in material and
workmanship for two years from the day of purchase. It does not cover normal wear, accidents, liquid, misuse,
missing parts or repairs made by other people. Batteries are covered for twelve months or three hundred charge
cycles, whichever comes first. To open a claim, write the serial number, a description of the problem and a
photograph. We repair the device, replace it by an equal one, or give the money back when neither is possible.
Orders can be changed or cancelled until they leave the warehouse. Express delivery takes one or two days, standard
delivery three to five days, and remote islands up to two weeks. When nobody is at home the driver leaves a card and
tries again on the next working day. Large items, furniture and appliances are delivered to the kerb. Gift cards
never expire, cannot be exchanged for cash and may be used for several orders until the balance is zero. Discounts
cannot be combined with each other. Personal data are kept only as long as the law demands. You may ask for a copy,
correct mistakes or have everything deleted. Passwords are stored as hashes and nobody in the company can read them.
Do not share the code that we send to your phone. Members collect one point for every euro, and one hundred points
are worth five euros at the next purchase. Membership is free, can be ended at any time, and the points are lost
after eighteen months without an order. Students, teachers and nurses receive ten percent with a valid card.
Business customers pay by invoice within fourteen days and get net prices. Beautiful is better than ugly. Explicit
is better than implicit. Simple is better than complex. Flat is better than nested. Errors should never pass
silently, unless explicitly silenced. In the face of ambiguity, refuse the temptation to guess. There should be one,
and preferably only one, obvious way to do it. Now is better than never, although never is often better than right
now. The quick brown fox jumps over the lazy dog while seven wizards quietly mix a strange blue potion at night. A
prompt is the text that a model reads before it writes. The same beginning, called a prefix, needs to be read only
once when the server keeps its keys and values in memory. The next request that starts alike reads only what is new.
Memory is limited, therefore old entries are removed first. Measure the time to the first token, count the tokens
that were cached, compare both with the run before, and write down what you changed. First think about the question,
then look for the rule, check each condition, weigh the exceptions, and only then decide. Hmm, wait: is the box
sealed? Yes, so the first rule holds. Let me see. The user wants to know whether an opened item can go back. Okay,
it was not damaged, therefore it cannot.
Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
October November December morning evening today tomorrow yesterday hour minute second week year red green yellow
black white small large heavy light quick slow early late open closed left right above below inside outside north
south east west water coffee bread sugar salt garden kitchen window table chair school library station bridge river
mountain forest island weather summer winter music picture letter number answer question reason example problem
solution project report system process network printer keyboard monitor charger headphones speaker camera tablet
laptop phone watch screen button manual battery cable
0 1 2 3 4 5 6 7 8 9 10 12 14 15 16 20 24 25 28 30 32 40 48 50 60 64 72 80 90 96 100 128 200 256 365 500 512 1000
1024 2026
{"name": "value", "items": [1, 2, 3], "ok": true, "error": null}
<a href="#top"> x = y + 1; if (a < b) { return a; } // end
- first item
- second item

# Heading

## Second heading

1. Step one
2. Step two

未開封のアクセサリーは、購入証明書があれば三十日以内に返品できます。開封済みのアクセサリーは、到着時に破損していた場合に限り返品できます。
お客様が商品を開封した後で気が変わった場合、返品はできますか。該当する規約の文と、短い理由を答えてください。保証期間は購入日から二年間です。
送料は、当社の間違いの場合にのみ返金されます。ご注文は、出荷前であれば変更またはキャンセルできます。ありがとうございます。よろしくお願いします。
サーバーは同じ始まりの文章を一度だけ読み、その結果をメモリに残します。次の質問では、新しい部分だけを読みます。古いものから順に消されます。
"""

TURNS = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
)
PLAIN_TEMPLATE = TURNS + "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
THINKING_TEMPLATE = TURNS + (
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}"
    "{%- endif -%}"
)


def say(stage: str, text: str) -> None:
    """One progress line for the program that started us."""
    print(json.dumps({"stage": stage, "text": text}), flush=True)


def make_tokenizer(*, thinking: bool) -> Tokenizer:
    """A byte-level BPE of at most `VOCAB_SIZE` tokens; training has no random part: the same one everywhere."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        max_token_length=12,  # bytes: Japanese has no spaces, a whole sentence would become one token
        special_tokens=[END, START, STOP],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    if thinking:
        # Not "special": a reasoning parser must see them in the decoded text, as with Qwen3.
        tokenizer.add_tokens([AddedToken("<think>", special=False), AddedToken("</think>", special=False)])
    return tokenizer


def is_word(tokenizer: Tokenizer, token_id: int) -> bool:
    """Whether this token alone is a space and an English word or the beginning of one."""
    text = tokenizer.decode([token_id])
    return text.startswith(" ") and len(text) > 3 and text[1:].isascii() and text[1:].isalpha()


def projections(rng: np.random.Generator, layer: str, *, kv_heads: int) -> dict[str, Any]:
    """Attention and MLP of one layer: rows are outputs, scaled by the fan-in."""

    def matrix(outputs: int, inputs: int) -> Any:
        return (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)

    return {
        f"{layer}.self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN),
        f"{layer}.self_attn.k_proj.weight": matrix(kv_heads * HEAD_DIM, HIDDEN),
        f"{layer}.self_attn.v_proj.weight": matrix(kv_heads * HEAD_DIM, HIDDEN),
        f"{layer}.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM),
        f"{layer}.mlp.gate_proj.weight": matrix(MLP, HIDDEN),
        f"{layer}.mlp.up_proj.weight": matrix(MLP, HIDDEN),
        f"{layer}.mlp.down_proj.weight": matrix(HIDDEN, MLP),
    }


def make_weights(config: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """Random float32 weights under the usual Hugging Face names."""
    rng = np.random.default_rng(SEED)
    sliding = config["model_type"] == "gemma3_text"
    norms = ["input_layernorm", "post_attention_layernorm"]
    # gemma's RMSNorm multiplies by 1 + weight
    one = np.zeros if sliding else np.ones
    if sliding:
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    size = config["vocab_size"]
    head = rng.standard_normal((size, HIDDEN)).astype(np.float32) / np.float32(np.sqrt(HIDDEN))
    # A row of zeros is never the largest: only words are written, no control token and no half character, so that an
    # answer has the length that was asked for and every token is a piece of the stream.
    head[[i for i in range(size) if not is_word(tokenizer, i)]] = 0
    weights: dict[str, Any] = {
        "model.embed_tokens.weight": rng.standard_normal((size, HIDDEN)).astype(np.float32),
        "model.norm.weight": one(HIDDEN, dtype=np.float32),
        "lm_head.weight": head,
    }
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}"
        weights |= projections(rng, layer, kv_heads=config["num_key_value_heads"])
        weights |= {f"{layer}.{norm}.weight": one(HIDDEN, dtype=np.float32) for norm in norms}
        if sliding:
            weights |= {
                f"{layer}.self_attn.{norm}.weight": one(HEAD_DIM, dtype=np.float32) for norm in ("q_norm", "k_norm")
            }
    return weights


def make_config(family: str, tokenizer: Tokenizer) -> dict[str, Any]:
    """The `config.json` of a family."""
    config: dict[str, Any] = {
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "head_dim": HEAD_DIM,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT,
        "vocab_size": tokenizer.get_vocab_size(),
        "tie_word_embeddings": False,
        "eos_token_id": tokenizer.token_to_id(STOP),
        "torch_dtype": "float32",
    }
    if family != "sliding":
        return {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": 2,
            "num_key_value_heads": KV_HEADS,
            **config,
        }
    return {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "num_hidden_layers": 4,
        "num_key_value_heads": 1,
        "query_pre_attn_scalar": HEAD_DIM,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 64,
        "sliding_window_pattern": 2,
        **config,
    }


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--family", choices=["llama", "thinking", "sliding"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    thinking = options.family == "thinking"
    options.out.mkdir(parents=True, exist_ok=True)
    say("making", "tokenizer")
    tokenizer = make_tokenizer(thinking=thinking)
    tokenizer.save(str(options.out / "tokenizer.json"))
    write_json(
        options.out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": STOP,
            "pad_token": END,
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "chat_template": THINKING_TEMPLATE if thinking else PLAIN_TEMPLATE,
        },
    )
    say("making", "random weights")
    config = make_config(options.family, tokenizer)
    write_json(options.out / "config.json", config)
    save_file(make_weights(config, tokenizer), options.out / "model.safetensors", metadata={"format": "mlx"})
    say("ready", "done")


if __name__ == "__main__":
    main()
