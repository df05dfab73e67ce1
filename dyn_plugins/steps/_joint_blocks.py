"""Block-diagonal derivatives: one block for each independent joint.

They hold the derivatives of functions in which joint i depends on the coordinates of
joint i alone. Not a solver: the derivatives of steps share it.
"""

from dyn_core.authoring import (
    Matrix,
    Vector,
    position_rate,
    product,
    slope_of,
    value_of,
    velocity_of,
    with_slopes,
)
from dyn_plugins.derivatives._chains import are_zero


def moved(model, q, u):
    """Return q, nq, with the derivative of q (+) eps u by eps.

    Args:
        model: Robot.
        q: Joint positions, nq.
        u: Displacement in the tangent space, nv.
    """
    return with_slopes(q, position_rate(model, q, u))


def displacement(model, q):
    """Return a zero Vector, nv, with the tangent velocity of q as its derivative."""
    value, rate = value_of(q), slope_of(q)
    return with_slopes(Vector.zeros(model.nv), velocity_of(model, value, rate))


class JointBlocks:
    """A block-diagonal matrix nv x nv; `blocks` by body index of independent joints.

    Joints without coordinates have no block.
    """

    def __init__(self, model, blocks):
        self.model, self.blocks = model, blocks

    def __matmul__(self, M):
        """Return the product with a Matrix M of nv rows, a Matrix."""
        return self.times(M)

    def times(self, M, onto=None):
        """Return the Matrix self @ M, or C + self @ M with C = `onto`."""
        rows = []
        for i in self.model.independent:
            part = self.model.v_slices[i]
            if M.rows[part]:
                C = None if onto is None else Matrix(onto.rows[part])
                rows += _block_times(self.blocks[i], Matrix(M.rows[part]), C).rows
        return Matrix(rows)

    def __rmatmul__(self, M):
        """Return M @ self for a Matrix M of nv columns; M itself if it has no rows.

        If nv is 0, the result has no rows, whatever M has.
        """
        if not M.rows:
            return M
        parts = []
        for i in self.model.independent:
            part = self.model.v_slices[i]
            columns, block = Matrix(row[part] for row in M.rows), self.blocks.get(i)
            if block is not None:
                sparse = _single_entries(block) is not None
                parts.append(columns @ block if sparse else product(columns, block))
        return Matrix(
            [x for row in rows for x in row]
            for rows in zip(*(part.rows for part in parts), strict=True)
        )

    @property
    def dense(self):
        """All entries, as a Matrix nv x nv; zero outside of the blocks."""
        return self @ Matrix.identity(self.model.nv)


def _block_times(B, M, onto):
    """Return the Matrix B M, or C + B M with C = `onto`; None for no sum.

    If M is zero, the result is `onto` itself, or without it a zero Matrix. A B with at
    most one nonzero entry in each row needs no product of the Graph.
    """
    if all(are_zero(row) for row in M.rows):
        return Matrix.zeros(B.shape[0], M.shape[1]) if onto is None else onto
    single = _single_entries(B)
    if single is None:
        return product(B, M, onto)
    rows = []
    for k, (entry, n) in enumerate(single):
        row = onto.rows[k] if onto is not None else [0.0] * M.shape[1]
        rows.append(plus_scaled(row, entry, M.rows[n]))
    return Matrix(rows)


def _single_entries(B):
    """Return by row (entry, column), the only nonzero one; None if a row has more.

    An all-zero row gives (0.0, 0); a traced entry counts as nonzero.
    """
    single = []
    for row in B.rows:
        filled = [(x, n) for n, x in enumerate(row) if not are_zero([x])]
        if len(filled) > 1:
            return None
        single.append(filled[0] if filled else (0.0, 0))
    return single


def plus_scaled(numbers, factor, others, rolled=True):
    """Return the list of x + factor y for the pairs of `numbers` and `others`.

    It becomes one product of a Graph if `rolled` is true, the factor is not a float,
    and fewer than half of `others` are zero; otherwise one operation for each pair.
    """
    zeros = sum(are_zero([y]) for y in others)
    if not rolled or isinstance(factor, float) or 2 * zeros >= len(others):
        return [x + y * factor for x, y in zip(numbers, others, strict=True)]
    onto = None if are_zero(numbers) else Matrix([numbers])
    return product(Matrix([[factor]]), Matrix([others]), onto).rows[0]


def slopes_by_joint(model, function):
    """Return the derivatives of Vectors whose entries depend on their own joint alone.

    One coordinate of every joint varies at a time, all joints at once: `function` maps
    such a change, nv, to Vectors with their derivatives along it, and is called as
    often as the largest joint has coordinates, but at least once. The result is one
    JointBlocks for each Vector.
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
    """Return the Matrix whose columns are slopes of Vectors of length `height`."""
    if not columns or not height:
        return Matrix.zeros(height, len(columns))
    return Matrix(slope_of(column) for column in columns).T
