"""Exceptions of the package."""

__all__ = [
    "AccuracyError",
    "ApproximationWarning",
    "BudgetError",
    "NotDefinedError",
    "SamplingWarning",
]


class AccuracyError(ArithmeticError):
    """No method can return this number with an error that it can stand behind.

    Raised instead of a doubtful value.  The message names the question, the limit that was met
    and what would help, for example another ``method=``.
    """


class NotDefinedError(ValueError):
    """A question that is well formed, but not defined for this mechanism.

    An adjacency, a threat model or a method that does not cover what was asked about.  It is a
    class of its own so that tables can tell such questions from a slip of the program.
    """


class BudgetError(RuntimeError):
    """A release does not fit into a budget; it was not booked and must not happen."""


class ApproximationWarning(UserWarning):
    """An approximation outside the range in which it is any good, or a bound in place of a value.

    The message says how large its error may be and which method is exact there, or what the
    answers are bounds of.
    """


class SamplingWarning(UserWarning):
    """An accountant takes batches for Poisson samples, and cannot see how they were drawn.

    Its answers are no guarantee for a loader that shuffles.  It is said once in a process, by
    whatever accountant is asked first; ``warnings.simplefilter("ignore", SamplingWarning)``
    acknowledges that the batches are Poisson samples.
    """
