"""Laws of one step on the real line, by the distribution functions of their noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from flint import arb

from campaign.truth.law import Law, Parts, Point

__all__ = [
    "CauchyPair",
    "ExponentialPair",
    "Gaussian",
    "Laplace",
    "Logistic",
    "Monotone",
    "SubstitutedGaussian",
    "SubstitutedLaplace",
    "TwoVariances",
]

FAR = 60  # standard deviations; what lies beyond has mass below e^-1800
LOG_FAR = 1800  # the same for tails that fall as e^-x
LARGE = 1000

Tails = tuple[arb, arb]  # mass below and above a point


def normal(x: arb) -> Tails:
    """Masses of N(0, 1) below and above x, both with small relative errors.

    For large arguments balls of erfc say only that it is small, those of gamma_upper keep digits.
    """
    if abs(x.mid()) < LARGE:
        tail = (abs(x) / arb(2).sqrt()).erfc() / 2
    else:
        tail = (x * x / 2).gamma_upper(arb(1) / 2) / arb.pi().sqrt() / 2
    return (tail, 1 - tail) if x.mid() < 0 else (1 - tail, tail)


def normal_density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def laplace(x: arb) -> Tails:
    """Masses of noise of density e^-|x| / 2 below and above x."""
    tail = (-abs(x)).exp() / 2
    return (tail, 1 - tail) if x.mid() < 0 else (1 - tail, tail)


def logistic(x: arb) -> Tails:
    """Masses of the logistic law below and above x."""
    return 1 / (1 + (-x).exp()), 1 / (1 + x.exp())


class Monotone(Law):
    """A pair whose loss does not decrease along the line, by masses below and above a point."""

    def __init__(self, tails_a: Callable[[arb], Tails], tails_b: Callable[[arb], Tails]) -> None:
        self.tails_a, self.tails_b = tails_a, tails_b

    def place(self, c: arb) -> arb | None:
        raise NotImplementedError

    def at(self, c: arb) -> Parts:
        low, high = self.span()
        x = self.place(c)
        if x is None:
            above = bool(c.mid() <= (low.mid() + high.mid()) / 2)
            one, none = arb(1), arb(0)
            return Parts(one, none, one, none) if above else Parts(none, one, none, one)
        a_below, a_above = self.tails_a(x)
        b_below, b_above = self.tails_b(x)
        return Parts(a_above, a_below, b_above, b_below)

    def kinks(self) -> list[arb]:
        return []


class Gaussian(Monotone):
    """N(0, 1) and N(mu, 1)."""

    def __init__(self, mu: arb) -> None:
        self.mu = mu
        super().__init__(normal, lambda x: normal(x - mu))

    def place(self, c: arb) -> arb | None:
        return c / self.mu + self.mu / 2

    def span(self) -> tuple[arb, arb]:
        reach = self.mu * FAR + self.mu**2 / 2
        return -reach, reach

    def unbounded(self) -> tuple[bool, bool]:
        return True, True

    def pieces(self) -> list[tuple[arb, arb]]:
        return [(arb(-FAR), arb(0)), (arb(0), self.mu), (self.mu, self.mu + FAR)]

    def point(self, x: arb) -> Point:
        return Point(normal_density(x), normal_density(x - self.mu), self.mu * (x - self.mu / 2))


class Laplace(Monotone):
    """Laplace noise of scale 1 around 0 and around a distance; all losses lie in ± distance."""

    def __init__(self, distance: arb) -> None:
        self.distance = distance
        super().__init__(laplace, lambda x: laplace(x - distance))

    def place(self, c: arb) -> arb | None:
        x = (c + self.distance) / 2
        return x if 0 < x.mid() <= self.distance.mid() else None

    def span(self) -> tuple[arb, arb]:
        return -self.distance, self.distance

    def kinks(self) -> list[arb]:
        return [-self.distance, self.distance]

    def pieces(self) -> list[tuple[arb, arb]]:
        return [(arb(0), self.distance)]

    def point(self, x: arb) -> Point:
        a, b = (-x).exp() / 2, (x - self.distance).exp() / 2
        return Point(a, b, 2 * x - self.distance)

    def atoms(self) -> list[tuple[arb, arb, arb]]:
        far = (-self.distance).exp() / 2
        return [(arb(0.5), far, -self.distance), (far, arb(0.5), self.distance)]


class Logistic(Monotone):
    """Logistic noise of scale 1 around 0 and around a distance."""

    def __init__(self, distance: arb) -> None:
        self.distance = distance
        super().__init__(logistic, lambda x: logistic(x - distance))

    def place(self, c: arb) -> arb | None:
        # e^((c + d)/2) = (1 + e^x) / (1 + e^(x - d)) is between 1 and e^d
        root = ((c + self.distance) / 2).exp()
        above, below = root - 1, 1 - root * (-self.distance).exp()
        if above.mid() <= above.rad() or below.mid() <= below.rad():
            return None
        return (above / below).log()

    def span(self) -> tuple[arb, arb]:
        return -self.distance, self.distance


class ExponentialPair(Monotone):
    """Exponential laws on (0, inf): A of rate ``rate`` > 1 and B of rate 1."""

    def __init__(self, rate: arb) -> None:
        self.rate = rate
        super().__init__(lambda x: self._tails(rate * x), self._tails)

    @staticmethod
    def _tails(x: arb) -> Tails:
        return -((-x).expm1()), (-x).exp()

    def place(self, c: arb) -> arb | None:
        x = (c + self.rate.log()) / (self.rate - 1)
        return x if x.mid() > x.rad() else None

    def span(self) -> tuple[arb, arb]:
        lowest = -self.rate.log()
        return lowest, lowest + (self.rate - 1) * LOG_FAR

    def unbounded(self) -> tuple[bool, bool]:
        return False, True


class SubstitutedGaussian(Monotone):
    """(1 - p) N(0, 1) + p N(-mu, 1), and the same with N(mu, 1)."""

    def __init__(self, mu: arb, probability: arb) -> None:
        self.mu, self.p, self.rest = mu, probability, 1 - probability
        super().__init__(lambda x: self._mixed(x, -mu), lambda x: self._mixed(x, mu))

    def _mixed(self, x: arb, shift: arb) -> Tails:
        pairs = zip(normal(x), normal(x - shift), strict=True)
        below, above = (self.rest * zero + self.p * one for zero, one in pairs)
        return below, above

    def place(self, c: arb) -> arb | None:
        # with y = e^(mu x) and q = (1 - p)/p e^(mu²/2): y + q = e^c (q + 1/y)
        if c.mid() < 0:
            return -self._place(-c)
        return self._place(c)

    def _place(self, c: arb) -> arb:
        q = self.rest / self.p * (self.mu**2 / 2).exp()
        b = c.expm1() * q
        return ((b + (b * b + 4 * c.exp()).sqrt()) / 2).log() / self.mu

    def span(self) -> tuple[arb, arb]:
        reach = self._loss(self.mu + FAR)
        return -reach, reach

    def _loss(self, x: arb) -> arb:
        up, down = ((s * self.mu * x - self.mu**2 / 2).exp() for s in (1, -1))
        return ((self.rest + self.p * up) / (self.rest + self.p * down)).log()

    def unbounded(self) -> tuple[bool, bool]:
        return True, True

    def pieces(self) -> list[tuple[arb, arb]]:
        ends = [-self.mu - FAR, -self.mu, arb(0), self.mu, self.mu + FAR]
        return list(pairwise(ends))

    def point(self, x: arb) -> Point:
        zero = self.rest * normal_density(x)
        a, b = (zero + self.p * normal_density(x + s * self.mu) for s in (1, -1))
        return Point(a, b, self._loss(x))


class SubstitutedLaplace(Monotone):
    """(1 - p) Laplace around 0 + p Laplace around -distance, and the same with +distance."""

    def __init__(self, distance: arb, probability: arb) -> None:
        self.distance, self.p, self.rest = distance, probability, 1 - probability
        super().__init__(lambda x: self._mixed(x, -distance), lambda x: self._mixed(x, distance))

    def _mixed(self, x: arb, shift: arb) -> Tails:
        pairs = zip(laplace(x), laplace(x - shift), strict=True)
        below, above = (self.rest * zero + self.p * one for zero, one in pairs)
        return below, above

    def _loss(self, x: arb) -> arb:
        """Loss at x in [0, distance]."""
        down = self.rest + self.p * (-self.distance).exp()
        return ((self.rest + self.p * (2 * x - self.distance).exp()) / down).log()

    def place(self, c: arb) -> arb | None:
        if abs(c.mid()) > self.span()[1].mid():
            return None
        size = abs(c)
        value = size.exp() * (self.rest + self.p * (-self.distance).exp()) - self.rest
        x = ((value / self.p).log() + self.distance) / 2
        return -x if c.mid() < 0 else x

    def span(self) -> tuple[arb, arb]:
        reach = self._loss(self.distance)
        return -reach, reach

    def kinks(self) -> list[arb]:
        low, high = self.span()
        return [low, arb(0), high]

    def pieces(self) -> list[tuple[arb, arb]]:
        return [(-self.distance, arb(0)), (arb(0), self.distance)]

    def point(self, x: arb) -> Point:
        around = [(-abs(x - shift)).exp() / 2 for shift in (-self.distance, 0, self.distance)]
        left, middle, right = around
        loss = self._loss(x) if x.mid() >= 0 else -self._loss(-x)
        return Point(self.rest * middle + self.p * left, self.rest * middle + self.p * right, loss)

    def atoms(self) -> list[tuple[arb, arb, arb]]:
        low, high = self.span()
        (a, _), (b, _) = self.tails_a(-self.distance), self.tails_b(-self.distance)
        return [(a, b, low), (b, a, high)]


class _Interval(Law):
    """A pair whose loss is large in an interval or outside of it.

    A subclass says in `crossings` where the loss passes c, as (x, y, inside): the loss is above c
    inside (x, y) or outside of it; None for x means that nothing lies inside.
    """

    def __init__(self, tails_a: Callable[[arb], Tails], tails_b: Callable[[arb], Tails]) -> None:
        self.tails_a, self.tails_b = tails_a, tails_b

    def crossings(self, c: arb) -> tuple[arb | None, arb | None, bool]:
        raise NotImplementedError

    def at(self, c: arb) -> Parts:
        x, y, inside = self.crossings(c)
        found: list[arb] = []
        for tails in (self.tails_a, self.tails_b):
            if x is None or y is None:
                within, without = arb(0), arb(1)
            else:
                (left, above_x), (below_y, right) = tails(x), tails(y)
                without = left + right
                # the difference that cancels less; both are balls, whatever is lost
                within = below_y - left if left.mid() < 0.5 else above_x - right
            found += [within, without] if inside else [without, within]
        return Parts(*found)

    def kinks(self) -> list[arb]:
        raise NotImplementedError


class TwoVariances(_Interval):
    """N(0, 1) and N(mean, scale), scale not 1."""

    def __init__(self, mean: arb, scale: arb) -> None:
        self.mean, self.scale = mean, scale
        super().__init__(normal, lambda x: normal((x - mean) / scale))
        # loss = quadratic x² + linear x + constant
        self.quadratic = (1 - scale**-2) / 2
        self.linear = mean / scale**2
        self.constant = -(mean**2) / (2 * scale**2) - scale.log()
        self.turn = -self.linear / (2 * self.quadratic)

    def _loss(self, x: arb) -> arb:
        return (self.quadratic * x + self.linear) * x + self.constant

    def crossings(self, c: arb) -> tuple[arb | None, arb | None, bool]:
        high_inside = bool(self.scale < 1)
        square = (c - self._loss(self.turn)) / self.quadratic
        if square.mid() <= 0:
            return None, None, high_inside
        root = square.sqrt()
        return self.turn - root, self.turn + root, high_inside

    def span(self) -> tuple[arb, arb]:
        reach = FAR * (1 + self.scale) + abs(self.mean)
        ends = [self._loss(x) for x in (self.turn, -reach, reach)]
        return min(ends, key=lambda e: e.mid()), max(ends, key=lambda e: e.mid())

    def unbounded(self) -> tuple[bool, bool]:
        return not self.scale > 1, bool(self.scale > 1)


class CauchyPair(_Interval):
    """Cauchy noise of scale 1 around 0 and around a distance."""

    def __init__(self, distance: arb) -> None:
        self.distance = distance
        super().__init__(self._tails, lambda x: self._tails(x - distance))

    @staticmethod
    def _tails(x: arb) -> Tails:
        tail = arb.atan2(arb(1), abs(x)) / arb.pi()
        return (tail, 1 - tail) if x.mid() < 0 else (1 - tail, tail)

    def crossings(self, c: arb) -> tuple[arb | None, arb | None, bool]:
        # 1 + x² >= t (1 + (x - d)²), that is (1 - t) x² + 2 t d x + 1 - t - t d² >= 0
        if c.mid() > 0:  # by symmetry about d/2: the loss is above c where it is below -c mirrored
            x, y, inside = self.crossings(-c)
            return (
                (None, None, not inside)
                if x is None or y is None
                else (self.distance - y, self.distance - x, not inside)
            )
        t, d = c.exp(), self.distance
        rest = -c.expm1()
        if rest.mid() <= rest.rad():  # at c = 0 the loss is above on a half-line
            return -(arb(10) ** 5000), d / 2, False
        root = t * d * d - rest * rest
        if root.mid() <= 0:
            return None, None, False
        far = -(t * d + root.sqrt())  # both roots are negative; the product of them is known
        x = far / rest
        y = (rest - t * d * d) / far
        return x, y, False

    def span(self) -> tuple[arb, arb]:
        d = self.distance
        reach = 2 * (d / 2).asinh()
        return -reach, reach
