"""The one table of actions: bindings, footer, command palette, help and README are made from it."""

from mlxcache_tui.core.actions import ActionInfo

ACTIONS: tuple[ActionInfo, ...] = (
    ActionInfo(
        id="send",
        key="ctrl+s,f5",
        label="send",
        help="Send the composer's request, as many at once as it says.",
        scope="anywhere",
    ),
    ActionInfo(
        id="send_again",
        key="ctrl+r",
        label="again",
        help="Send the selected request of ours once more, unchanged.",
        scope="anywhere",
    ),
    ActionInfo(
        id="alternate",
        key="ctrl+t",
        label="alternate",
        help="Take the policy before this one (A, B, A …) and send; with nothing sent yet, send the composer's own.",
        scope="anywhere",
    ),
    ActionInfo(
        id="next_policy", key="f2", label="policy", help="Take the next policy into the composer.", scope="anywhere"
    ),
    ActionInfo(
        id="next_question",
        key="f3",
        label="question",
        help="Take the next prepared question into the composer.",
        scope="anywhere",
    ),
    ActionInfo(
        id="cancel",
        key="f4",
        label="cancel",
        help="Cancel the selected request if it is open, else all open requests of ours.",
        scope="anywhere",
    ),
    ActionInfo(
        id="warm",
        key="f6",
        label="warm",
        help="Send the composer's policy with one output token, so that its prefix is stored.",
        scope="anywhere",
    ),
    ActionInfo(
        id="toggle_thinking",
        key="f7",
        label="thinking",
        help="Thinking on, off, or as the template has it.",
        scope="anywhere",
    ),
    ActionInfo(
        id="toggle_stream",
        key="f8",
        label="stream",
        help="Streamed or whole replies; only streamed ones have a TTFT.",
        scope="anywhere",
    ),
    ActionInfo(
        id="toggle_seed",
        key="",
        label="seed",
        help="Send with a seed or without: one makes the server take its sequential path, without checkpoints.",
        scope="anywhere",
    ),
    ActionInfo(
        id="cycle_count",
        key="f9",
        label="at once",
        help="How many copies are sent at once: 1, 2, 4, 8.",
        scope="anywhere",
    ),
    ActionInfo(
        id="scenarios",
        key="ctrl+l",
        label="scenarios",
        help="Pick a scenario: steps with expectations, run beside the table; or go to the one that runs.",
        scope="anywhere",
    ),
    ActionInfo(
        id="server",
        key="ctrl+o",
        label="server",
        help="Start a server, attach to one, or restart ours with other flags.",
        scope="anywhere",
    ),
    ActionInfo(
        id="compare",
        key="f12,equals_sign",
        label="compare",
        help="Compare two recorded sessions or run results, side by side, with a verdict for each metric.",
        scope="anywhere",
    ),
    ActionInfo(
        id="restart",
        key="f10",
        label="restart",
        help="Restart our server with the same flags; its cache starts empty.",
        scope="anywhere",
    ),
    ActionInfo(
        id="stop_server", key="", label="stop server", help="Stop the server that we started.", scope="anywhere"
    ),
    ActionInfo(
        id="zoom",
        key="ctrl+g,z",
        label="zoom",
        help="Give the pane in focus the whole screen, and back.",
        scope="anywhere",
    ),
    ActionInfo(id="pane('requests')", key="1", label="requests", help="Go to the request table.", scope="not typing"),
    ActionInfo(id="pane('composer')", key="2", label="composer", help="Go to the composer.", scope="not typing"),
    ActionInfo(id="pane('cache')", key="3", label="cache", help="Go to the cache pane.", scope="not typing"),
    ActionInfo(id="pane('memory')", key="4", label="memory", help="Go to the memory graph.", scope="not typing"),
    ActionInfo(id="pane('log')", key="5", label="log", help="Go to the server's log.", scope="not typing"),
    ActionInfo(
        id="pane('scenario')",
        key="6",
        label="scenario",
        help="Go to the scenario that is open.",
        scope="not typing",
    ),
    ActionInfo(
        id="leave",
        key="escape",
        label="leave",
        help="Leave the text field for the request table, or end the zoom.",
        scope="anywhere",
    ),
    ActionInfo(
        id="detail",
        key="enter",
        label="detail",
        help="Open the selected request: answer, reason, prompt, timeline, curl.",
        scope="requests",
    ),
    ActionInfo(
        id="scenario('pause')",
        key="space",
        label="pause scenario",
        help="Pause the scenario, and go on; what is in flight goes on.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('stop')",
        key="x",
        label="stop scenario",
        help="Stop the scenario; what was measured is kept.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('again')",
        key="r",
        label="step again",
        help="Run the chosen step once more, on the server as it is now.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('values')",
        key="v",
        label="scenario values",
        help="Edit limits, concurrency, repeat and tokens, and run again beside the last result.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('report')",
        key="w",
        label="scenario report",
        help="Save the report as Markdown and JSON.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('compare')",
        key="equals_sign",
        label="compare runs",
        help="Compare the last two runs: the one before, and the one that stands beside it.",
        scope="scenario",
    ),
    ActionInfo(
        id="scenario('close')",
        key="c",
        label="close scenario",
        help="Close the scenario; the composer comes back.",
        scope="scenario",
    ),
    ActionInfo(
        id="toggle_policies",
        key="p",
        label="by policy",
        help="The cache by policy (reuse, last hit, evictions, share), and back to its entries.",
        scope="cache",
    ),
    ActionInfo(
        id="dismiss_warning", key="x", label="seen", help="Seen: put the cache's warning away for good.", scope="cache"
    ),
    ActionInfo(
        id="warm_again",
        key="w",
        label="warm again",
        help="After a restart: read again what was warm before, one output token each.",
        scope="cache",
    ),
    ActionInfo(
        id="replay('play')",
        key="space",
        label="play",
        help="Play the recording, and pause; at its end from the start.",
        scope="replay",
    ),
    ActionInfo(
        id="replay('request')",
        key="right_square_bracket",
        label="next request",
        help="Go on until the next request would be sent: all that one did is there.",
        scope="replay",
    ),
    ActionInfo(
        id="replay('request_back')",
        key="left_square_bracket",
        label="back",
        help="Back by one request.",
        scope="replay",
    ),
    ActionInfo(id="replay('event')", key="full_stop", label="next event", help="Go on by one event.", scope="replay"),
    ActionInfo(id="replay('event_back')", key="comma", label="event back", help="Back by one event.", scope="replay"),
    ActionInfo(id="replay('eviction')", key="e", label="eviction", help="Go on to the next eviction.", scope="replay"),
    ActionInfo(
        id="replay('eviction_back')",
        key="E",
        label="eviction back",
        help="Back to the eviction before this moment.",
        scope="replay",
    ),
    ActionInfo(
        id="replay('faster')",
        key="plus",
        label="faster",
        help="Play faster: 1, 2, 5, 10, 50 times, as fast as it goes.",
        scope="replay",
    ),
    ActionInfo(id="replay('slower')", key="minus", label="slower", help="Play slower.", scope="replay"),
    ActionInfo(
        id="replay('start')", key="less_than_sign", label="start", help="Go before the first event.", scope="replay"
    ),
    ActionInfo(
        id="replay('end')",
        key="greater_than_sign",
        label="end",
        help="Go behind the last event; a file that is still being written is followed.",
        scope="replay",
    ),
    ActionInfo(
        id="comparison('next')",
        key="right",
        label="next step",
        help="The steps one by one: intervals, and both answers side by side.",
        scope="compare",
    ),
    ActionInfo(
        id="comparison('previous')", key="left", label="step before", help="Back through the steps.", scope="compare"
    ),
    ActionInfo(
        id="comparison('swap')", key="s", label="swap", help="A and B change places: judge the other.", scope="compare"
    ),
    ActionInfo(
        id="comparison('meant')", key="m", label="meant", help="All that differs was meant: compare.", scope="compare"
    ),
    ActionInfo(
        id="comparison('save')",
        key="w",
        label="save",
        help="Save the comparison as Markdown and JSON, in private files.",
        scope="compare",
    ),
    ActionInfo(
        id="comparison('back')", key="escape,q", label="back", help="To the overview, then out.", scope="compare"
    ),
    ActionInfo(id="search_log", key="slash", label="search", help="Search the server's log.", scope="not typing"),
    ActionInfo(id="help", key="f1,question_mark", label="help", help="Keys and words explained.", scope="anywhere"),
    ActionInfo(
        id="picture",
        key="",
        label="screenshot",
        help="Save the screen as a picture (SVG), in a private file.",
        scope="anywhere",
    ),
    ActionInfo(id="palette", key="ctrl+p", label="palette", help="All commands by name.", scope="anywhere"),
    ActionInfo(id="quit", key="ctrl+q", label="quit", help="Quit; a server that we started stops.", scope="anywhere"),
)

FOOTER = (
    "send",
    "leave",
    "pane('composer')",
    "pane('cache')",
    "pane('memory')",
    "pane('log')",
    "scenarios",
    "server",
    "send_again",
    "next_question",
    "next_policy",
    "alternate",
    "compare",
    "help",
    "quit",
)
"""What the footer shows where it has the room, by importance; help and quit come first of all."""

OF_COMPOSER = (
    "send",
    "alternate",
    "next_policy",
    "next_question",
    "warm",
    "toggle_thinking",
    "toggle_stream",
    "toggle_seed",
    "cycle_count",
)
"""Actions on the composer's draft; none while a scenario stands in its place."""

NOT_TYPING = tuple(info.id for info in ACTIONS if info.scope == "not typing")
"""Actions whose keys write a letter where something is typed."""

OF_SENDING = (*OF_COMPOSER, "send_again", "cancel", "pane('composer')")
"""Actions of who sends; none while only watching."""

OF_LIVE = (
    *OF_SENDING,
    "scenarios",
    "scenario",
    "server",
    "restart",
    "stop_server",
    "pane('scenario')",
    *(info.id for info in ACTIONS if info.scope == "scenario"),
)
"""Actions that need a server; a recording has none of them."""
REPLAY_FOOTER = ("play", "request", "event", "eviction", "faster", "end")
COMPARE_FOOTER = ("next", "previous", "swap", "meant", "save", "back")
