"""The deepest points of a shape on a half-space, which have rows in a traced step."""

from dyn_core.authoring import Vector, where


class DeepestPoints:
    """The deeper half of a shape's points on a half-space, in their order.

    An odd number of points is halved downwards. A shape with one or two points has all
    of them. The other points lie above: a velocity that the deeper points allow never
    brings them below, unless the shape is inside of the half-space. The choice depends
    on values, so it is traced.

    Attributes:
        count: Number of points of the shape.
        points: ContactCandidates of the deeper half.
    """

    def __init__(self, points):
        """Choose from all ContactCandidates of one shape on one half-space."""
        self.points, self.count = points, len(points)
        self._few = self.count // 2 if self.count > 2 else self.count
        if self._few == self.count:
            return
        deeper = [0.0] * self.count  # number of deeper points, for each point
        for j, point in enumerate(points):
            for i in range(j):
                less = where(point.gap < points[i].gap, 1.0, 0.0)
                deeper[i], deeper[j] = deeper[i] + less, deeper[j] + (1.0 - less)
        self._chosen = [count < self._few - 0.5 for count in deeper]
        self._until, count = [], 0.0  # number of chosen points up to each, inclusive
        for chosen in self._chosen:
            count = count + where(chosen, 1.0, 0.0)
            self._until.append(count)
        places = self.of_half([[point.gap, *point.place] for point in points])
        self.points = [
            point.placed(gap, Vector(xyz))
            for point, (gap, *xyz) in zip(points, places, strict=False)
        ]

    def of_half(self, lists):
        """Select from lists for all points the lists of the deeper half, in order.

        Args:
            lists: One list of numbers for each point of the shape, in their order.
        """
        picked = []
        for place in range(self._few):
            # The last point that can have this index in the half.
            last = place + self.count - self._few
            values = lists[last]
            for i in reversed(range(place, last)):
                values = _either(self._until[i] > place + 0.5, lists[i], values)
            picked.append(values)
        return picked

    def of_all(self, lists):
        """Return a list of numbers for each point, from the lists of the deeper half.

        A point that is not in the half gets zeros.

        Args:
            lists: One list of numbers for each point of the half, in their order.
        """
        if self._few == self.count:
            return lists
        spread = []
        for i, chosen in enumerate(self._chosen):
            first = max(0, i - self.count + self._few)
            values = lists[first]
            for place in range(first + 1, min(i + 1, self._few)):
                values = _either(self._until[i] > place + 0.5, lists[place], values)
            spread.append([where(chosen, x, 0.0) for x in values])
        return spread


def _either(condition, a, b):
    """Return list a if the condition holds, else list b, element by element."""
    return [where(condition, x, y) for x, y in zip(a, b, strict=True)]


def points_by_shape(touching, deepest):
    """Return the DeepestPoints of each shape on each half-space.

    Args:
        touching: ContactCandidates of all points.
        deepest: Whether to choose the deeper half of each shape; if False, each point
            is a group of its own, and all are chosen.
    """
    shapes = {}
    for k, point in enumerate(touching):
        shapes.setdefault(point.pair if deepest else k, []).append(point)
    return [DeepestPoints(points) for points in shapes.values()]


def impulses_of_half(shapes, impulses):
    """Return the impulses of points with rows from the impulses of all points.

    Three impulses for each point; shapes: DeepestPoints, in the order of the points.
    """
    return _by_shape([(x.of_half, x.count) for x in shapes], impulses)


def impulses_of_all(shapes, impulses):
    """Return the impulses of all points from the impulses of points with rows.

    Three impulses for each point; shapes: DeepestPoints, in the order of the points.
    """
    return _by_shape([(x.of_all, len(x.points)) for x in shapes], impulses)


def _by_shape(changes, impulses):
    """Return impulses to which a function is applied shape by shape.

    Args:
        changes: Pairs (function of a list of triples, number of points), by shape. The
            function gets one triple for each point.
        impulses: Impulses, three for each point, shape after shape.

    Returns:
        Vector of the triples that the functions return.
    """
    first, changed = 0, []
    for change, count in changes:
        starts = range(first, first + 3 * count, 3)
        for three in change([list(impulses[k : k + 3]) for k in starts]):
            changed += three
        first += 3 * count
    return Vector(changed)
