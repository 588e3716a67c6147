"""Where in a TOML text each key stands: `tomllib` gives no places after parsing, a message to a person needs one.

The text is known to be valid TOML (`tomllib` read it before), so the scan only follows structure: headers, keys, and
values far enough to find their end.
"""

from collections.abc import Callable, Mapping

Path = tuple[str | int, ...]

_BARE_END = frozenset(",]}\n#")


def key_lines(text: str) -> Mapping[Path, int]:
    """Line numbers (from 1) of every key, table header and array element of a valid TOML text.

    Paths are as in the parsed object: `("steps", 2, "expect", 0)`.
    """
    scan = _Scan(text.replace("\r\n", "\n"))
    scan.document()
    return scan.lines


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """The line of a path, or of the nearest thing around it that has one; 1 if nothing has."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return 1


class _Scan:
    """A cursor over the text that notes the line of what it passes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self.array_sizes: dict[Path, int] = {}

    def document(self) -> None:
        """Read headers and keys to the end of the text."""
        table: Path = ()
        while self._skip_space(newlines=True):
            if self.text.startswith("[[", self.at):
                self._advance(2)
                table = self._open_element(self._key(self._resolve, ()))
                self._advance(2)
            elif self.text[self.at] == "[":
                self._advance(1)
                table = self._key(self._resolve, ())
                self.lines.setdefault(table, self.line)
                self._advance(1)
            else:
                self._pair(table)

    def _resolve(self, path: Path) -> Path:
        """A header's path: a name that is an array of tables means its last element."""
        size = self.array_sizes.get(path)
        return path if size is None else (*path, size - 1)

    def _open_element(self, resolved: Path) -> Path:
        # The last part of `[[a.b]]` names the array itself, not the element before.
        array = resolved[:-1] if resolved and isinstance(resolved[-1], int) else resolved
        index = self.array_sizes.get(array, 0)
        self.array_sizes[array] = index + 1
        self.lines.setdefault(array, self.line)
        self.lines[(*array, index)] = self.line
        return (*array, index)

    def _key(self, resolve: Callable[[Path], Path], base: Path) -> Path:
        """A dotted key, appended to `base`; the cursor ends on what follows it."""
        path = base
        while True:
            self._skip_space(newlines=False)
            path = resolve((*path, self._key_part()))
            self._skip_space(newlines=False)
            if self.text[self.at : self.at + 1] != ".":
                return path
            self._advance(1)

    def _key_part(self) -> str:
        start = self.at
        if self.text[start] in "\"'":
            self._string()
            # An escape inside a quoted key stays as it is written: rare, and it costs a line number at most.
            return self.text[start + 1 : self.at - 1]
        while self.at < len(self.text) and self.text[self.at] not in " \t.=]":
            self.at += 1
        return self.text[start : self.at]

    def _pair(self, table: Path) -> None:
        line = self.line
        path = self._key(lambda p: p, table)
        for end in range(len(table) + 1, len(path) + 1):
            self.lines.setdefault(path[:end], line)
        self._advance(1)  # the =
        self._skip_space(newlines=False)
        self._value(path)

    def _value(self, path: Path) -> None:
        mark = self.text[self.at]
        if mark in "\"'":
            self._string()
        elif mark == "[":
            self._advance(1)
            index = 0
            while self._skip_space(newlines=True) and self.text[self.at] != "]":
                self.lines[(*path, index)] = self.line
                self._value((*path, index))
                index += 1
                self._pass_comma()
            self._advance(1)
        elif mark == "{":
            self._advance(1)
            while self._skip_space(newlines=True) and self.text[self.at] != "}":
                self._pair(path)
                self._pass_comma()
            self._advance(1)
        else:
            while self.at < len(self.text) and self.text[self.at] not in _BARE_END:
                self.at += 1

    def _pass_comma(self) -> None:
        self._skip_space(newlines=True)
        if self.text[self.at : self.at + 1] == ",":
            self._advance(1)

    def _string(self) -> None:
        """Pass a string of any of the four kinds."""
        mark = self.text[self.at]
        triple = self.text.startswith(mark * 3, self.at)
        close = mark * 3 if triple else mark
        self._advance(len(close))
        while not self.text.startswith(close, self.at):
            self._advance(2 if mark == '"' and self.text[self.at] == "\\" else 1)
        self._advance(len(close))
        # Up to two quotes may stand inside, right before the closing three.
        while triple and self.text[self.at : self.at + 1] == mark:
            self._advance(1)

    def _skip_space(self, *, newlines: bool) -> bool:
        """Pass blanks and comments (and line ends, if told); false at the end of the text."""
        blanks = " \t\n" if newlines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] in blanks:
                self._advance(1)
            elif newlines and self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _advance(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count
