"""The field's words, a plain sentence each, for the help screen and for reports."""

from mlxcache_tui.core.views import ReasonKind

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("token", "A piece of text, often a part of a word, that the model reads or writes as one unit."),
    ("prompt", "Everything the model reads before it answers: system message, earlier messages and the question."),
    ("prefix", "The beginning of a prompt; only what is equal from the very first token on can be reused."),
    ("prefill", "Reading the prompt: the model works through all tokens of it that were not cached."),
    ("decode", "Writing the answer, one token after the other; reusing a prefix does not make this faster."),
    ("TTFT", "Time to first token: from sending the request to the first piece of text or thinking that comes back."),
    ("KV cache", "What the model remembers of the tokens it has read, so that it need not read them again."),
    ("cached tokens", "How many tokens of the prompt were taken from the cache instead of being read again."),
    (
        "eviction",
        "The server throws a stored entry out because a limit (number or bytes) was passed: the oldest first.",
    ),
    ("next out", "Beside an entry: the one that is thrown out next, the oldest of its type, used or not."),
    ("gone?", "Beside an inferred entry: requests of other clients may have pushed it out since."),
    ("checkpoint", "A copy of the cache stored at the end of the system or user message, to go on from later."),
    (
        "sequential path",
        "How the server works on requests with a seed, a draft model or kv-bits: one at a time, without checkpoints.",
    ),
    (
        "unified memory",
        "The one memory of a Mac that processor and graphics share: weights and caches both live in it.",
    ),
    (
        "footprint",
        "The memory that the system charges to the process; on a Mac it includes what the graphics side holds.",
    ),
    ("tool call", "An answer in which the model asks the program to run a function instead of writing text."),
)

REQUEST_STATES: dict[str, str] = {
    "queued": "sent, and not admitted yet: the server works on others, or splits the prompt into tokens",
    "prefill": "the prompt is being read",
    "thinking": "the model writes what it thinks, in front of the answer",
    "answering": "the answer is being written",
    "done": "complete",
    "cut": "the stream ended early; what came is kept",
    "failed": "there was no answer; the detail says why",
    "cancelled": "the one who sent it closed the connection",
}
"""What the state of a request means, for the help."""

REASONS: dict[ReasonKind, str] = {
    "hit": "the beginning of the prompt was stored; only the rest was read",
    "first": "nothing like it was sent to this server before: all of it was read",
    "diverged": "like an earlier prompt up to a place; from that first difference on all was read again",
    "in_flight": "the same beginning was still being read for another request, and can be reused only afterwards",
    "restarted": "it was stored before the server was started anew, which empties the cache",
    "model_changed": "another model, adapter or other template arguments than before: nothing can be shared",
    "evicted": "it was stored, and a limit of the cache threw it out before it was wanted again",
    "cancelled": "the earlier request was ended before its prompt was stored",
    "sequential": "a seed, a draft model or kv-bits: such requests are served one at a time, without checkpoints",
    "not_trimmable": "its entry is stored, but this model's cache cannot be cut back to the shared part",
    "disabled": "a limit of 0: the server was told to keep nothing",
    "not_reported": "the server does not say how much it reused",
    "unknown": "what is known does not tell why",
}
"""What the reasons of the column `why` mean, for the help and for reports."""

MARKS: dict[str, str] = {
    "chosen": "the row that the keys work on",
    "of others": "in front of a policy: another client sent the request",
    "earlier": "in front of a row: sent before the server was started anew, so what it stored is gone",
    "inferred": "not measured: worked out from what was sent here and the server's rules, or by counting",
    "at work": "in the status line: so many requests are in work now",
    "evicted": "on an entry: thrown out; behind it by which request, and which limit was passed",
    "swallowed": "on an entry: not kept by itself any more, since a longer one begins with the same tokens",
}
"""What marks on rows and entries mean, for the help."""
