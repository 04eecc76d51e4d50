"""Exceptions of the package."""

__all__ = ["AccuracyError", "ApproximationWarning"]


class AccuracyError(ArithmeticError):
    """No method can return this number with an error that it can stand behind.

    Raised instead of a doubtful value.  The message names the question, the limit that was met
    and what would help, for example another ``method=``.
    """


class ApproximationWarning(UserWarning):
    """An approximation was asked outside the range in which it is any good.

    The message says how large its error may be and which method is exact there.
    """
