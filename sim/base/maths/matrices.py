"""Eigenvalues and singular values of small matrices, by Jacobi rotations in a fixed order.

LAPACK's results differ between kernels of BLAS, in sign and in last bits. Golub and Van Loan,
*Matrix Computations*, §8.5 (two-sided) and §8.6 (one-sided, after Hestenes).
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np

from sim.base.arrays import F8

_SWEEPS = 60
_NEGLIGIBLE = 1e-17


def eigh(matrix: F8) -> tuple[F8, F8]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors in columns."""
    a, vectors = np.array(matrix, dtype=np.float64), np.eye(len(matrix))
    for _ in range(_SWEEPS):
        moved = False
        for p, q in combinations(range(len(a)), 2):
            if abs(a[p, q]) <= _NEGLIGIBLE * sqrt(abs(a[p, p] * a[q, q])):
                continue
            moved = True
            c, s = _rotation(a[q, q] - a[p, p], 2.0 * a[p, q])
            _rotate(a, p, q, c, s)
            _rotate(a.T, p, q, c, s)
            _rotate(vectors, p, q, c, s)
            a[p, q] = a[q, p] = 0.0
        if not moved:
            break
    order = np.argsort(np.diag(a), kind="stable")
    return np.diag(a)[order], vectors[:, order]


def svd(matrix: F8) -> tuple[F8, F8, F8]:
    """Return left, singular values and right of a square matrix: (left * values) @ right."""
    a, right = np.array(matrix, dtype=np.float64), np.eye(len(matrix))
    for _ in range(_SWEEPS):
        moved = False
        for p, q in combinations(range(len(a)), 2):
            pp, qq, pq = ((a[:, i] * a[:, j]).sum() for i, j in ((p, p), (q, q), (p, q)))
            if abs(pq) <= _NEGLIGIBLE * sqrt(pp * qq):
                continue
            moved = True
            c, s = _rotation(qq - pp, 2.0 * pq)
            _rotate(a, p, q, c, s)
            _rotate(right, p, q, c, s)
        if not moved:
            break
    size = np.sqrt((a * a).sum(axis=0))
    order = np.argsort(-size, kind="stable")
    left = a / np.where(size > 0, size, 1.0)
    return left[:, order], size[order], right[:, order].T


def _rotation(difference: float, product: float) -> tuple[float, float]:
    """Return cosine and sine of the rotation that makes two columns orthogonal."""
    t = product / (abs(difference) + sqrt(difference * difference + product * product))
    t = -t if difference < 0 else t
    c = 1.0 / sqrt(t * t + 1.0)
    return c, t * c


def _rotate(a: F8, p: int, q: int, c: float, s: float) -> None:
    a[:, p], a[:, q] = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
