"""Random draws of what stands in files: numbers, names and what is neither."""

from __future__ import annotations

import decimal
import fractions
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

NUMBERS = (
    "0", "-0", "-0.0", "1", "-1", "+1", "1.", ".5", "1e-300", "5e-324", "1e-320",
    "1e30", "1e99", "1e100", "1.1e100", "1e155", "1e300", "1e400", "-1e400",
    "1e999999999", "1e-999999999", "nan", "-nan", "NaN", "inf", "-inf", "Infinity",
    ".inf", ".nan", "1_0", "0x10", "010", "1,5", "1.0.0", "--1", "1e", "e5", "1d5",
    "1:30", "1 2", "1 2 3 4", "", " ", ".", "-", "true", "null", "~", "${pi}",
    "\u0664\u0662", "\uff11\uff12", "\u00bd", "\u221e", "\u2212 1", "1\u00a02",
    "9" * 400, "9" * 20_000 + "x", "0" * 400 + "1", "0." + "1" * 400,
)  # fmt: skip
NAMES = (
    "", " ", "base", "world", "default", "*", "link1", "link2", "joint1", "joint2",
    "nobody", "a b", "a'b", 'a"b', "a&b", "a<b", "\u00e9", "\u4e2d\u6587", "\U0001f916",
    "\u202eabc", "a\tb", "a\nb", "a/b", "..", "/", "~", "%s", "{}", "{0}", "0", "-1",
    "1e5", "root_joint", "revolute", "fixed", "ball", "name", "x" * 70, "x" * 3000,
    "a\x7fb",    "a\u0085b", "a\u2028b", "\ufeff", "\ufffd", "\ufdd0",
)  # fmt: skip


class Draws(random.Random):
    """A random generator with the draws that files need, the same for each seed."""

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def number(self, low: float = -10.0, high: float = 10.0) -> float:
        """Return a number of a common size, often a round one."""
        kind = self.randrange(6)
        if kind == 0 and low <= 0.0 <= high:
            return 0.0
        if kind == 1:
            return float(round(self.uniform(low, high)))
        return round(self.uniform(low, high), self.randrange(1, 8))

    def odd_number(self) -> str:
        """Return text where a number should be: a strange number or none at all."""
        if self.chance(0.2):
            return f"{self.uniform(-1, 1)}e{self.randrange(-330, 330)}"
        return self.choice(NUMBERS)

    def odd_name(self, names: Sequence[str] = ()) -> str:
        """Return a strange name, or one of another element."""
        return self.choice(names if names and self.chance(0.4) else NAMES)

    def odd_value(self, names: Sequence[str] = ()) -> Any:
        """Return a value of any type that YAML or a mapping of a user can have."""
        kind = self.randrange(8)
        if self.chance(0.02):
            return self.choice(OBJECTS)
        if kind == 0:
            return self.odd_name(names)
        if kind == 1:
            return self.odd_number()
        if kind == 2:
            return self.uniform(-1, 1) * 10.0 ** self.randrange(-300, 300)
        if kind == 3:
            return {self.odd_name(names): self.choice(ODD) for _ in range(2)}
        if kind == 4:
            return [self.choice(ODD) for _ in range(self.randrange(5))]
        return self.choice(ODD)


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 10**12, 10**30, 10**400, -(10**4000), 0.0, -0.0,
    1.0, -1.0, 0.5, 1e-320, 1e100, 1e155, 1e300, float("nan"), float("inf"),
    float("-inf"), "", " ", "x", "1", "2e-5", "nan", [], {}, [[]], [{}], {"": 0}, [0],
    [1.0, 2.0, 3.0], [0, 0, 0], ["a", "b"], [[1.0]], [[1, 2], [3]], {"x": 1}, {1: 2},
    {True: 0, None: 1}, {1.5: [1]}, "\ud800", "x" * 3000, [None] * 3, ["x"] * 500,
    [[[[[[1]]]]]],
)  # fmt: skip
# What only a mapping of a user can have.
OBJECTS: tuple[Any, ...] = (
    np.float64(1.0), np.int32(2), np.bool_(True), np.array([1.0, 2.0, 3.0]),
    np.array(["a"]), np.array(5.0), np.zeros((2, 2)), np.array([None]), np.str_("x"),
    (1.0, 2.0, 3.0), 1j, {1, 2}, b"x", bytearray(b"x"), range(3), print, Draws, object,
    decimal.Decimal("1.5"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3),
    np.datetime64("NaT"), np.float32("nan"), np.array([1 + 2j]), memoryview(b"x"),
    Ellipsis, NotImplemented, np.ma.masked,
)  # fmt: skip
