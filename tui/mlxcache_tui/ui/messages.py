"""Messages that belong to no single widget."""

from textual.message import Message


class StateChanged(Message):
    """The fold has news; what changed is in the app's own set, so that merged messages lose nothing."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, StateChanged)
