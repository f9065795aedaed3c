"""Plane rotations for orthogonal joint diagonalization."""

from __future__ import annotations

import numpy as np

from odeco.kernels.compiling import njit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def jacobi_sweep(stack, frame):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """One sweep over all pairs (p, q) of symmetric matrices stack[:, :, l], in place; returns the largest |sin|.

    The angle minimises the sum of squared (p, q) entries after the rotation: the leading eigenvector of the 2 x 2
    matrix sum_l h_l h_l', h_l = (A_pp - A_qq, 2 A_pq).
    """
    n, _, m = stack.shape
    largest = 0.0
    for p in range(n - 1):
        for q in range(p + 1, n):
            on, off, cross = 0.0, 0.0, 0.0
            for k in range(m):
                difference = stack[p, p, k] - stack[q, q, k]
                double = 2.0 * stack[p, q, k]
                on += difference * difference
                off += double * double
                cross += difference * double
            theta = 0.5 * np.arctan2(2.0 * cross, on - off + np.hypot(on - off, 2.0 * cross))
            sine, cosine = np.sin(theta), np.cos(theta)
            largest = max(largest, abs(sine))
            if abs(sine) < 1e-15:
                continue
            for i in range(n):
                for k in range(m):
                    a, b = stack[i, p, k], stack[i, q, k]
                    stack[i, p, k] = cosine * a + sine * b
                    stack[i, q, k] = cosine * b - sine * a
            for j in range(n):
                for k in range(m):
                    a, b = stack[p, j, k], stack[q, j, k]
                    stack[p, j, k] = cosine * a + sine * b
                    stack[q, j, k] = cosine * b - sine * a
            for i in range(n):
                a, b = frame[i, p], frame[i, q]
                frame[i, p] = cosine * a + sine * b
                frame[i, q] = cosine * b - sine * a
    return largest
