"""Heaviest patterns of steps with a minimal separation, by dynamic programming.

The weight of a pattern π is Σ |⟨cᵢ, cⱼ⟩| over i, j in π.  It has few states in three cases: a step
interacts only with the previous step of π; only with the few before it that are near; or the rows
of the matrix are the nodes of trees, where the weight is Σ wᵣ² (number of steps of π in node r)².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["heaviest"]

FloatArray = npt.NDArray[np.float64]
Steps = npt.NDArray[np.intp]

BLOCK = 256  # columns whose products with all others are formed at once
MOST_STATES = 30_000  # of the dynamic program over near steps; more take seconds
MOST_NEAR = 2048  # steps for which that program is tried: all products are formed at once
MOST_JOINS = 4e8  # operations of joining tables of trees
LONGEST = 64  # largest separation for which trees are tried


class Heaviest(NamedTuple):
    """The largest weight, as a double, and a pattern that attains it (None for trees)."""

    weight: float
    pattern: Steps | None


def heaviest(matrix: FloatArray, number: int, gap: int) -> Heaviest | None:
    """Return a heaviest pattern of at most ``number`` steps, ``gap`` apart; None if it takes long.

    ``matrix`` has no zero column.  For trees, whose entries have one sign, only the weight is
    returned; it is attained.
    """
    one_sign = bool((matrix >= 0.0).all() or (matrix <= 0.0).all())
    tree = _intervals(matrix) if one_sign else None
    if tree is not None:
        found = _in_trees(matrix.shape[1], tree, number, gap)
        if found is not None:
            return found
    reach = _reach(matrix)
    if reach < 2 * gap:
        return _in_chains(matrix, number, gap, reach)
    return _near(matrix, number, gap, reach)


def _reach(matrix: FloatArray) -> int:
    """Largest distance of two steps whose columns are not orthogonal."""
    steps = matrix.shape[1]
    farthest = 0
    for start in range(0, steps, BLOCK):
        products = matrix[:, start : start + BLOCK].T @ matrix
        rows, columns = np.nonzero(products)
        if rows.size:
            farthest = max(farthest, int(np.abs(rows + start - columns).max()))
    return farthest


def _in_chains(matrix: FloatArray, number: int, gap: int, reach: int) -> Heaviest:
    """Dynamic program if each step interacts with the previous one at most: one state a step."""
    steps = matrix.shape[1]
    own = np.einsum("ij,ij->j", matrix, matrix)
    pairs = {
        d: 2.0 * np.abs(np.einsum("ij,ij->j", matrix[:, :-d], matrix[:, d:]))
        for d in range(gap, min(reach, steps - 1) + 1)
    }
    layers = [own.copy()]  # heaviest patterns of m steps that end at each step
    for _ in range(number - 1):
        last, before = layers[-1], np.zeros(steps)
        for d, pair in pairs.items():
            np.maximum(before[d:], last[:-d] + pair, out=before[d:])
        far = max(reach + 1, gap)
        if far < steps:
            np.maximum(before[far:], np.maximum.accumulate(last)[:-far], out=before[far:])
        layers.append(own + before)
    end = int(np.argmax(layers[-1]))
    weight, chosen = float(layers[-1][end]), [end]
    for last in layers[-2::-1]:
        values = np.full(steps, -1.0)
        values[: max(end - max(reach, gap - 1), 0)] = last[: max(end - max(reach, gap - 1), 0)]
        for d, pair in pairs.items():
            if end - d >= 0:
                values[end - d] = last[end - d] + pair[end - d]
        end = int(np.argmax(values))
        if values[end] < 0.0:  # fewer steps
            break
        chosen.append(end)
    return Heaviest(weight, np.array(chosen[::-1], dtype=np.intp))


def _near(matrix: FloatArray, number: int, gap: int, reach: int) -> Heaviest | None:
    """Dynamic program whose state is the set of steps that later ones interact with."""
    steps = matrix.shape[1]
    if steps > MOST_NEAR:
        return None
    products = np.abs(matrix.T @ matrix)
    states: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {
        (i,): (float(products[i, i]), (i,)) for i in range(steps)
    }
    best = max(states.values())
    for _ in range(number - 1):
        found: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {}
        for state, (weight, pattern) in states.items():
            first = state[-1] + gap
            if first >= steps:
                continue
            added = products[list(state), first:].sum(axis=0) * 2.0 + products.diagonal()[first:]
            for step, more in enumerate((added + weight).tolist(), first):
                near = (*(i for i in state if step + gap - i <= reach), step)
                known = found.get(near)
                if known is None or more > known[0]:
                    found[near] = (more, (*pattern, step))
            if len(found) > MOST_STATES:
                return None
        if not found:
            break
        states = found
        best = max(best, *states.values())
    return Heaviest(best[0], np.array(best[1], dtype=np.intp))


class _Node(NamedTuple):
    """Steps first ... end - 1, the square of the row's entries there, and the nodes inside."""

    first: int
    end: int
    square: float
    inner: tuple[_Node, ...]


def _intervals(matrix: FloatArray) -> tuple[_Node, ...] | None:
    """Rows as nodes of trees, if each is constant on an interval and no two cross; else None."""
    spans: dict[tuple[int, int], float] = {}
    for row in np.abs(matrix):
        places = np.flatnonzero(row)
        if not places.size:
            continue
        first, end = int(places[0]), int(places[-1]) + 1
        if end - first != places.size or (row[first:end] != row[first]).any():
            return None
        spans[first, end] = spans.get((first, end), 0.0) + float(row[first]) ** 2
    stack: list[tuple[int, int, float, list[_Node]]] = [(0, matrix.shape[1], 0.0, [])]

    def close() -> None:
        first, end, square, inner = stack.pop()
        stack[-1][3].append(_Node(first, end, square, tuple(inner)))

    for first, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while len(stack) > 1 and stack[-1][1] <= first:
            close()
        if stack[-1][1] < end:
            return None
        stack.append((first, end, spans[first, end], []))
    while len(stack) > 1:
        close()
    return tuple(stack[0][3])


class _StretchSums:
    """Largest weights in a stretch of steps, by number of steps and free steps at both ends.

    ``weights[m - 1][h, t]`` is that of m steps with h free steps before the first one and t - 1
    behind the last one, h and t capped at the separation; -∞ if there is none.
    """

    def __init__(self, size: int, weights: list[FloatArray]) -> None:
        self.size, self.weights = size, weights


def _in_trees(steps: int, nodes: tuple[_Node, ...], number: int, gap: int) -> Heaviest | None:
    """Dynamic program on trees: joins the tables of adjacent stretches, of equal nodes once."""
    if gap > LONGEST:
        return None
    kept: dict[tuple[object, ...], _StretchSums] = {}
    spent = 0.0

    def shape(node: _Node) -> tuple[object, ...]:
        """Key that is the same for nodes that differ only in position."""
        return (
            node.end - node.first,
            node.square,
            tuple((inner.first - node.first, shape(inner)) for inner in node.inner),
        )

    def step() -> _StretchSums:
        table = np.full((gap + 1, gap + 1), -np.inf)
        table[0, min(1, gap)] = 0.0
        return _StretchSums(1, [table])

    def moved(free: int, at: int) -> int:
        return min(free + at, gap)

    def joined(a: _StretchSums, b: _StretchSums) -> _StretchSums:
        nonlocal spent
        out = []
        most = min(number, len(a.weights) + len(b.weights), -(-(a.size + b.size) // gap))
        # open_[m - 1][h]: the largest weight in b with at least h free steps before the first
        open_ = [np.maximum.accumulate(w[::-1], axis=0)[::-1] for w in b.weights]
        for m in range(1, most + 1):
            table = np.full((gap + 1, gap + 1), -np.inf)
            if m <= len(a.weights):
                for t in range(gap + 1):
                    to = moved(t, b.size)
                    table[:, to] = np.maximum(table[:, to], a.weights[m - 1][:, t])
            if m <= len(b.weights):
                for h in range(gap + 1):
                    to = moved(h, a.size)
                    table[to] = np.maximum(table[to], b.weights[m - 1][h])
            for i in range(1, m):
                if i > len(a.weights) or m - i > len(b.weights):
                    continue
                left, right = a.weights[i - 1], open_[m - i - 1]
                spent += float((gap + 1) ** 3)
                for t in range(gap + 1):
                    if not np.isfinite(left[:, t]).any():
                        continue
                    sums = left[:, t, None] + right[gap - t][None, :]
                    np.maximum(table, sums, out=table)
            out.append(table)
        return _StretchSums(a.size + b.size, out)

    def stretch(first: int, end: int, inner: tuple[_Node, ...]) -> _StretchSums | None:
        """Table of steps first ... end - 1: the nodes inside and the single steps, joined."""
        parts: list[_StretchSums] = []
        at = first
        for node in inner:
            parts += [step() for _ in range(at, node.first)]
            parts.append(of(node))
            at = node.end
        parts += [step() for _ in range(at, end)]
        while len(parts) > 1:
            if spent > MOST_JOINS:
                raise OverflowError
            pairs = [joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[len(pairs) * 2 :]
        return parts[0]

    def of(node: _Node) -> _StretchSums:
        key = shape(node)
        if key not in kept:
            inside = stretch(node.first, node.end, node.inner)
            assert inside is not None
            tables = [w + node.square * m * m for m, w in enumerate(inside.weights, 1)]
            kept[key] = _StretchSums(inside.size, tables)
        return kept[key]

    try:
        whole = stretch(0, steps, nodes)
    except OverflowError:
        return None
    assert whole is not None
    weight = max(float(table.max()) for table in whole.weights)
    return Heaviest(weight, None)
