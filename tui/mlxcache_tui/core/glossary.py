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
