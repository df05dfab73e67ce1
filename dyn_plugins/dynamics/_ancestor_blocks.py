"""Blocks of joint-space matrices: each joint with each of its ancestors."""

from dyn_core.authoring import Matrix, Transform, product

MANY = 1000  # pairs of coordinates above which blocks are products in the base frame
GROUP = 8  # minimum number of coordinates in one such product


def ancestor_blocks(model, X, *outputs):
    """Return the blocks sum F_i.T M_j for each body i and each j: i or an ancestor.

    F_i is transformed from body i to body j: F_j = X_j.T F_i from child to parent. Each
    output is a list of terms (F, M), force and motion subspaces by body in its
    coordinates, and gives a dict from (i, j) to a Matrix, nv of joint i x nv of joint
    j. Blocks of joints without coordinates are empty or missing.
    """
    pairs = sum(
        model.joint[i].nv * model.joint[j].nv
        for i in model.bodies
        for j in _carriers(model, i)
    )
    # Small robots skip the zeros of motion subspaces; large ones need fewer operations.
    blocks = _in_the_base_frame if pairs > MANY else _body_by_body
    return blocks(model, X, outputs)


def _carriers(model, i):
    """Return a list of body i and its ancestors, body i first; never the base."""
    bodies = []
    while i > 0:
        bodies.append(i)
        i = model.parent[i]
    return bodies


def _body_by_body(model, X, outputs):
    """Return the result of ancestor_blocks; forces are transformed from body to body.

    Motion subspaces in body coordinates are mostly zeros, and zeros cost nothing.
    """
    results = [{} for _ in outputs]
    for i in model.bodies:
        moved = {id(F): F[i] for terms in outputs for F, _ in terms}
        for j in _carriers(model, i):
            for result, terms in zip(results, outputs, strict=True):
                parts = [moved[id(F)].T @ M[j] for F, M in terms]
                result[i, j] = sum(parts[1:], parts[0])
            if model.parent[j] > 0:
                moved = {key: X[j].T @ F for key, F in moved.items()}
    return results


def _in_the_base_frame(model, X, outputs):
    """Return the result of ancestor_blocks by matrix products in the base frame.

    Bodies i whose joints have no coordinates get no blocks.
    """
    up, down = [Transform.identity()], [Transform.identity()]
    for i in model.bodies:
        up.append(X[i] @ up[model.parent[i]])
        down.append(up[i].inverse)
    forces, motions = {}, {}
    for F, M in (pair for terms in outputs for pair in terms):
        for i in model.bodies:
            forces.setdefault((id(F), i), up[i].T @ F[i])
            motions.setdefault((id(M), i), down[i] @ M[i])
    results = [{} for _ in outputs]
    for group in _groups(model):
        carriers = sorted({j for i in group for j in _carriers(model, i)})
        for result, terms in zip(results, outputs, strict=True):
            left = _stacked([[forces[id(F), i] for i in group] for F, _ in terms])
            right = _stacked([[motions[id(M), j] for j in carriers] for _, M in terms])
            whole = product(left, right.T)
            result |= _cut(model, whole, group, carriers)
    return results


def _stacked(terms):
    """Return a Matrix of a row for each column of the subspaces, terms side by side."""
    columns = [[column for subspace in term for column in subspace] for term in terms]
    return Matrix(
        [x for column in row for x in column] for row in zip(*columns, strict=True)
    )


def _cut(model, whole, group, carriers):
    """Return the blocks of a product by (i, j), j being body i or one of its ancestors.

    whole: Rows by coordinates of the bodies `group`, columns by those of `carriers`.
    """
    blocks, row = {}, 0
    for i in group:
        rows, column = range(row, row + model.joint[i].nv), 0
        for j in carriers:
            columns = range(column, column + model.joint[j].nv)
            if j in _carriers(model, i):
                blocks[i, j] = Matrix([whole[a, b] for b in columns] for a in rows)
            column = columns.stop
        row = rows.stop
    return blocks


def _groups(model):
    """Return the bodies whose joints have coordinates, in order, as a list of groups.

    Each group has at least eight coordinates; the last one may have fewer.
    """
    groups, size = [[]], 0
    for i in model.bodies:
        if model.joint[i].nv == 0:
            continue
        if size >= GROUP:
            groups.append([])
            size = 0
        groups[-1].append(i)
        size += model.joint[i].nv
    return [group for group in groups if group]
