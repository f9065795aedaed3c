"""``"jennrich"``: the eigenvectors of one random slice (appendix D)."""

from __future__ import annotations

import numpy as np

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.orthogonal import slice_frame
from odeco.tensors import SymmetricTensor


def one_slice(tensor: SymmetricTensor, rank: int, rng: np.random.Generator) -> Found:
    """Eigenvectors of T(I, I, eta) for one random eta (of T(I, I, M), M random symmetric, at order 4).

    Exact without noise. With noise the error grows with the inverse of the smallest gap between the v_i' eta, about
    k^2 times the noise: kept as the baseline that the paper argues against.
    """
    return Found(slice_frame(tensor.random_slice(rng), rank), 1, CONVERGED)
