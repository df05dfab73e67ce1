"""Derivatives of what each joint does by itself: one block for each joint.

Not a solver: the derivatives of steps share it.
"""

from dyn_core.authoring import (
    Matrix,
    Vector,
    position_rate,
    slope_of,
    value_of,
    velocity_of,
    with_slopes,
)


def moved(model, q, u):
    """Return the position that moves along a displacement: q (+) eps u."""
    return with_slopes(q, position_rate(model, q, u))


def displacement(model, q):
    """Return a position with derivatives as its displacement with derivatives."""
    value, rate = value_of(q), slope_of(q)
    return with_slopes(Vector.zeros(model.nv), velocity_of(model, value, rate))


class JointBlocks:
    """A matrix nv x nv of one block for each independent joint, zeros elsewhere.

    Attributes:
        model: Robot.
        blocks: By body of the joint.
    """

    def __init__(self, model, blocks):
        self.model, self.blocks = model, blocks

    def __matmul__(self, M):
        """Return the product with a matrix of nv rows."""
        rows = []
        for i in self.model.independent:
            part = Matrix(M.rows[self.model.v_slices[i]])
            rows += (self.blocks[i] @ part).rows if part.rows else ()
        return Matrix(rows)

    def __rmatmul__(self, M):
        """Return the product of a matrix of nv columns with this one."""
        transposed = {i: block.T for i, block in self.blocks.items()}
        return (JointBlocks(self.model, transposed) @ M.T).T if M.rows else M

    @property
    def dense(self):
        """The whole Matrix, nv x nv."""
        return self @ Matrix.identity(self.model.nv)


def slopes_by_joint(model, function):
    """Return the derivatives of Vectors nv of which each joint's part is its own.

    One coordinate of every joint varies at a time, all joints at once: as many calls
    as the widest joint has coordinates.

    Args:
        model: Robot.
        function: Takes changes of coordinates, Vector nv, and returns Vectors nv of
            numbers with their derivatives.

    Returns:
        JointBlocks of each Vector.
    """
    slices = {i: model.v_slices[i] for i in model.independent}
    widths = {i: part.stop - part.start for i, part in slices.items()}
    columns = []
    for k in range(max(widths.values(), default=0)):
        unit = [0.0] * model.nv
        for i, width in widths.items():
            if k < width:
                unit[slices[i].start + k] = 1.0
        columns.append([slope_of(y) for y in function(Vector(unit))])
    count = len(columns[0]) if columns else len(function(Vector(())))
    results = []
    for n in range(count):
        blocks = {
            i: Matrix(columns[k][n][slices[i]] for k in range(width)).T
            for i, width in widths.items()
            if width
        }
        results.append(JointBlocks(model, blocks))
    return results


def slope_columns(columns, height):
    """Return the Matrix of the derivatives of Vectors, as its columns.

    Args:
        columns: Vectors of numbers with their derivatives.
        height: How many numbers each has.
    """
    if not columns or not height:
        return Matrix.zeros(height, len(columns))
    return Matrix(slope_of(column) for column in columns).T
