"""Hooks on stand-ins of the server's classes, and on the real prompt cache of the installed mlx_lm."""

import importlib.util
import logging
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlxcache_tui.observer.observe import Guard, Hooks, Hub, here, load_names, model_name, wrapped


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The log's own factory and this thread's state, as they were."""
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)
    here.__dict__.clear()


def drained(hub: Hub) -> list[tuple[str, dict[str, Any]]]:
    events = []
    while not hub.queue.empty():
        _, kind, fields = hub.queue.get()
        events.append((kind, fields))
    return events


# --- the wrapping ----------------------------------------------------------------------------------------------------


def broken(*_: Any, **__: Any) -> None:
    raise LookupError("ours")


def test_an_error_of_ours_is_told_once_and_changes_nothing() -> None:
    hub = Hub()
    for hooks in ({"before": broken}, {"after": broken}, {"ended": broken}):
        full = {"before": None, "after": None, "ended": None} | hooks
        add = wrapped(lambda a, b=1: a + b, Guard(hub, "add"), **full)
        assert [add(1), add(1, b=5)] == [2, 6]
        ((_, notice),) = drained(hub)
        assert "add failed (LookupError: ours)" in notice["text"]


def test_an_error_of_the_server_passes_through_and_ends_are_told() -> None:
    hub, seen = Hub(), []
    fault = OSError("theirs")

    def fails(_: int) -> None:
        raise fault

    hook = wrapped(fails, Guard(hub, "f"), None, broken, lambda error, *args: seen.append((error, args)))
    with pytest.raises(OSError, match="theirs") as caught:
        hook(7)
    assert caught.value is fault
    assert seen == [(fault, (7,))]
    assert not drained(hub), "what follows a success is not done after a failure"


def test_an_interrupt_is_nobodys_error() -> None:
    hub = Hub()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wrapped(lambda: 1, Guard(hub, "f"), interrupted, None, None)()


def test_a_server_without_anything_is_left_alone_and_all_is_missing() -> None:
    hub = Hub()
    Hooks(hub).install(SimpleNamespace(), SimpleNamespace())
    assert hub.hooks == ["log records"]
    assert "APIHandler.do_POST" in hub.missing
    assert "PromptTrie.add" in hub.missing


def test_names_of_models() -> None:
    assert model_name(("m", None, None)) == "m"
    assert model_name(("m", "a", "d")) == "m + adapter a + draft d"
    assert model_name(None) is None
    flags = SimpleNamespace(model="real", adapter_path=None, draft_model="small")
    assert load_names(flags, "default_model", None, "default_model") == {
        "model": "real",
        "adapter": None,
        "draft": "small",
    }
    assert load_names(flags, "x", draft_model_path="d") == {"model": "x", "adapter": None, "draft": "d"}


class Generator:
    """A stand-in for the server's generator, with what happens in `_generate` given."""

    def _generate(self) -> None:
        raise RuntimeError("no\nmemory")

    def generate(self, _request: Any, _args: Any, progress_callback: Any = None) -> Any:
        progress_callback(2, 5)
        context = SimpleNamespace(prompt=[1], prompt_cache_count=0, initial_state="normal")
        return context, iter([SimpleNamespace(text="a", finish_reason="stop")])


def test_the_death_of_the_generation_thread_is_told() -> None:
    class Dying(Generator):
        pass

    hub = Hub()
    Hooks(hub).install(SimpleNamespace(ResponseGenerator=Dying), SimpleNamespace())
    with pytest.raises(RuntimeError):
        Dying()._generate()
    assert drained(hub) == [("WorkerDied", {"error": "RuntimeError: no memory"})]


def test_a_generation_that_no_post_asked_for_is_left_alone() -> None:
    class Asked(Generator):
        pass

    hub, seen = Hub(), []
    Hooks(hub).install(SimpleNamespace(ResponseGenerator=Asked), SimpleNamespace())
    _, tokens = Asked().generate(SimpleNamespace(), None, progress_callback=lambda *step: seen.append(step))
    assert [token.text for token in tokens] == ["a"]
    assert seen == [(2, 5)]
    assert not drained(hub)


def test_lines_of_the_generation_thread_belong_to_the_request_it_serves() -> None:
    class Serving:
        def _tokenize(self, *_: Any) -> None:
            logging.getLogger("server").warning("of %s\nand more", "it")

        def _serve_single(self, request: Any) -> None:
            self._tokenize(None, request, None)
            raise ValueError("theirs")

    hub = Hub()
    Hooks(hub).install(SimpleNamespace(ResponseGenerator=Serving), SimpleNamespace())
    logging.getLogger("server").warning("of nobody")
    request = SimpleNamespace(mlxcache_key="k")
    with pytest.raises(ValueError, match="theirs"):
        Serving()._serve_single(request)
    logging.getLogger("server").warning("of nobody")
    assert drained(hub) == [("LogOwned", {"key": "k", "text": text}) for text in ("of it", "and more")]
    assert not here.single


# --- the real prompt cache -------------------------------------------------------------------------------------------


class Layer:
    """A layer's cache of one byte a token, that may or may not be cut back."""

    def __init__(self, tokens: int, *, trimmable: bool) -> None:
        self.tokens, self.trimmable = tokens, trimmable

    @property
    def nbytes(self) -> int:
        return self.tokens

    def is_trimmable(self) -> bool:
        return self.trimmable

    def trim(self, count: int) -> int:
        self.tokens -= count
        return count


@pytest.fixture(scope="module")
def caches() -> ModuleType:
    """A copy of its own of mlx_lm's module, to hook as one likes."""
    found = importlib.util.find_spec("mlx_lm.models.cache")
    assert found is not None
    assert found.origin is not None
    spec = importlib.util.spec_from_file_location("mlx_lm.models.cache_copy", found.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["hub"] = hub = Hub()
    Hooks(hub).install(SimpleNamespace(LRUPromptCache=module.LRUPromptCache), module)
    return module


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=7)
steps = st.lists(
    st.tuples(st.sampled_from(["insert", "insert", "fetch", "trim"]), prompts, st.sampled_from(["system", "user"])),
    min_size=1,
    max_size=40,
)


@pytest.mark.mlx
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@settings(deadline=None, max_examples=300)
@given(steps, st.integers(0, 4), st.sampled_from([1 << 63, 12]), st.booleans())
def test_what_is_told_is_what_the_cache_did(
    caches: ModuleType, steps: list[tuple[str, list[int], str]], max_size: int, max_bytes: int, trimmable: bool
) -> None:
    hub: Hub = caches.hub
    cache = caches.LRUPromptCache(max_size, max_bytes)
    ((_, limits),) = drained(hub)
    assert limits == {"max_count": max_size, "max_bytes": max_bytes}
    stored: dict[int, tuple[int, ...]] = {}
    here.key = "k"
    for what, tokens, kind in steps:
        if what == "insert":
            cache.insert_cache("m", tokens, [Layer(len(tokens), trimmable=trimmable)], cache_type=kind)
        elif what == "fetch":
            # A look-up whose path runs into nothing stored is the class's own trouble in some states: not ours.
            found, rest = cache.fetch_nearest_cache("m", tokens)
            ((_, looked),) = drained(hub)
            assert looked["cached_tokens"] == len(tokens) - len(rest)
            check_lookup(looked, found, tokens, stored)
        else:
            cache.trim_to(n_bytes=len(tokens))
        for told, fields in drained(hub):
            assert told == "_cache"
            for change, entry in fields["changes"]:
                fold(stored, change, entry, limit=max_size)
            assert fields["totals"] == (len(stored), sum(map(len, stored.values())))
        queues = cache._lru._lrus.values()
        assert sorted(stored.values()) == sorted(tuple(tokens) for queue in queues for _, tokens in queue)


def check_lookup(looked: dict[str, Any], found: object, tokens: list[int], stored: dict[int, tuple[int, ...]]) -> None:
    if found is None:
        assert (looked["entry"], looked["how"], looked["cached_tokens"]) == (None, "none", 0)
        return
    used, cached = stored[looked["entry"]], looked["cached_tokens"]
    assert list(used[:cached]) == tokens[:cached]
    match looked["how"]:
        case "exact":
            assert list(used) == tokens
        case "extended":
            assert len(used) == cached < len(tokens)
        case how:
            assert how == "trimmed"
            assert len(used) > cached


def fold(stored: dict[int, tuple[int, ...]], change: str, entry: dict[str, Any], *, limit: int) -> None:
    if change == "EntryInserted":
        if entry["replaced"] is not None:
            assert stored.pop(entry["replaced"]) == tuple(entry["tokens"])
        assert all(earlier < entry["entry"] for earlier in stored)
        stored[entry["entry"]] = tuple(entry["tokens"])
    elif change == "EntrySwallowed":
        gone = stored.pop(entry["entry"])
        assert stored[entry["by"]][: len(gone)] == gone
    else:
        assert change == "EntryEvicted"
        assert (entry["rule"] == "count") == (len(stored) > limit)
        del stored[entry["entry"]]


class OldCache:
    """The prompt cache of mlx-lm 0.31.0 and 0.31.1 in short: it is its own trie (here a table) and has two queues."""

    class CacheOrder:
        def __init__(self) -> None:
            self.queues: dict[bool, list[tuple[str, list[int]]]] = {False: [], True: []}

        def push(self, model: str, tokens: list[int], checkpoint: bool = False) -> None:
            self.queues[checkpoint].append((model, tokens))

        def remove(self, model: str, tokens: list[int]) -> None:
            queue = self.queues[(model, tokens) not in self.queues[False]]
            queue.remove((model, tokens))

        def pop(self) -> tuple[str, list[int]]:
            return self.queues[len(self.queues[False]) < len(self.queues[True])].pop(0)

    def __init__(self, max_size: int) -> None:
        self.max_size, self.max_bytes = max_size, 1 << 63
        self.table: dict[tuple[int, ...], Any] = {}
        self._lru = self.CacheOrder()

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        return sum(entry.nbytes for entry in self.table.values())

    def _get(self, _model: str, tokens: list[int]) -> Any:
        return self.table[tuple(tokens)]

    def insert_cache(self, model: str, tokens: list[int], layers: list[Layer], checkpoint: bool = False) -> None:
        for end in range(len(tokens)):
            if layers[0].is_trimmable() and self.table.pop(tuple(tokens[:end]), None):
                self._lru.remove(model, tokens[:end])
        if tuple(tokens) in self.table:
            self._lru.remove(model, tokens)
        else:
            self.table[tuple(tokens)] = SimpleNamespace(prompt_cache=layers, nbytes=layers[0].nbytes)
        self._lru.push(model, tokens, checkpoint=checkpoint)
        if len(self.table) > self.max_size:
            _, gone = self._lru.pop()
            del self.table[tuple(gone)]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(prompts, st.booleans()), min_size=1, max_size=30), st.integers(0, 4), st.booleans())
def test_what_is_told_of_the_older_class(steps: list[tuple[list[int], bool]], max_size: int, trimmable: bool) -> None:
    class Cache(OldCache):
        class CacheOrder(OldCache.CacheOrder):
            pass

    hub, stored = Hub(), dict[int, tuple[int, ...]]()
    Hooks(hub).install(SimpleNamespace(LRUPromptCache=Cache), SimpleNamespace())
    assert "CacheOrder.push" in hub.hooks
    cache = Cache(max_size)
    drained(hub)
    for tokens, checkpoint in steps:
        cache.insert_cache("m", tokens, [Layer(len(tokens), trimmable=trimmable)], checkpoint=checkpoint)
        ((_, fields),) = drained(hub)
        for change, entry in fields["changes"]:
            fold(stored, change, entry, limit=max_size)
        (kind,) = [entry["type"] for change, entry in fields["changes"] if change == "EntryInserted"]
        assert kind == ("user" if checkpoint else "assistant")
        assert sorted(stored.values()) == sorted(cache.table)
