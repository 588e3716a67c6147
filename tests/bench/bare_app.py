"""The least that a Textual program can be: one line of text."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class BareApp(App[None]):
    """One line."""

    def compose(self) -> ComposeResult:
        yield Static("a bare app")


if __name__ == "__main__":
    BareApp().run()
