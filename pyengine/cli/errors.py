"""What ends a command early."""

from __future__ import annotations

__all__ = ["CommandError"]


class CommandError(Exception):
    """A command cannot be carried out; the message is all that its user needs."""
