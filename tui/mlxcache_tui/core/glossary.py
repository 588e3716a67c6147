"""The field's words, a plain sentence each, for the help screen."""

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

REASONS: dict[str, str] = {
    "hit": "most of the prompt came from a stored entry",
    "first": "nothing like it was sent to this server before",
    "diverged": "the prompt differs from an earlier one too early; the detail shows where",
    "in flight": "the same beginning was still being read for another request",
    "restarted": "it was stored before the server was started anew, which empties the cache",
    "model changed": "another model, adapter or other template arguments than before",
    "evicted": "its entry was thrown out: by which request, and by which limit",
    "cancelled": "the earlier request was ended before its prompt was stored",
    "sequential": "served one at a time, where no checkpoints are kept",
    "not trimmable": "its entry is stored, but this model's cache cannot be cut back to the shared part",
    "disabled": "a limit of 0: nothing is stored",
    "not reported": "the server does not say how much it reused",
    "unknown": "what is known does not tell why",
}
"""What the reasons of the column `why` mean, for the help."""
