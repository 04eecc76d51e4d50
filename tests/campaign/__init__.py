"""Hostile campaign: random questions over all mechanisms, compared with independent truth.

``python -m campaign run --count 2000 --seed 20260101`` (with ``tests`` on the path, as in ``make
campaign``) asks questions, ``python -m campaign ask SEED INDEX`` repeats a single one, and ``python
-m campaign report JOURNAL`` prints the results in a journal.

It is in ``tests`` because it is a test of any length: it needs the extra ``test``, judges the
installed package by its public functions, and its own parts are tested by
``tests/test_campaign.py``.

The truth shares no code with the engines: `campaign.truth` imports nothing of pyengine. Finite
losses are summed exactly over all outcomes, noise of one step is taken from distribution functions,
and two steps are integrated numerically, all in ball arithmetic (python-flint). Many steps are
answered by `pyengine.reference`, which is part of the package under test but not of its engines;
these questions are marked.
"""
