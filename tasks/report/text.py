"""Format numbers, dates and lines for the report and the alarms."""

import math
import re
from datetime import date


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share as `74.5 %`, or as a dash if it was not measured (None or NaN)."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f} %"


def percent_range(low: float, high: float, digits: int = 1) -> str:
    """Format an interval of shares in percent, without the percent sign: `70.0–78.6`."""
    return f"{100 * low:.{digits}f}–{100 * high:.{digits}f}"


def number(value: float, digits: int) -> str:
    """Format a number with `digits` decimals and a real minus sign, or as a dash if it is NaN."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 round`, `3 rounds`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format seconds as `4.2 s`, `3 min 07 s` or `2 h 05 min`."""
    if seconds < 59.95:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def day(night: str) -> str:
    """Format a night's date, such as `2026-11-20`, as `20 November 2026`."""
    return f"{date.fromisoformat(night):%-d %B %Y}"


def plain_line(text: str) -> str:
    """Return text as one line of Markdown, with `<` escaped where it could open an HTML tag."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", " ".join(text.split()))
