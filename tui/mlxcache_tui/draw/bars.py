"""Bars of block characters, exact to an eighth of a cell."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
REST = "─"


def bar(fraction: float | None, width: int) -> tuple[str, str]:
    """The filled part and the rest of a bar, together `width` cells.

    `fraction` is held between 0 and 1; more than nothing is at least an eighth, less than all is never full. None, an
    unknown, is all rest.
    """
    if fraction is None or width <= 0:
        return "", REST * max(0, width)
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    if fraction > 0:
        eighths = max(eighths, 1)
    if fraction < 1:
        eighths = min(eighths, width * 8 - 1)
    full, part = divmod(eighths, 8)
    filled = "█" * full + (_EIGHTHS[part] if part else "")
    return filled, REST * (width - len(filled))
