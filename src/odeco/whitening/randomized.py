"""Randomized whitening of word pairs, by implicit products in a stated number of passes (section 6.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from odeco._random import RandomState, as_generator
from odeco.moments import FrequenciesAndPairs, WordFrequencies, WordPairs
from odeco.moments.passes import Passes, run_passes
from odeco.sources import as_source
from odeco.whitening.whitener import Whitener, check_n_components, check_spectrum

Array = NDArray[np.float64]

# Up to this many words the whole matrix is formed: one pass, and the eigenvalues are exact.
_SMALL_VOCABULARY = 500
# Part of the mean frequency 1/d that is added to each frequency before it becomes a scale, as regularized spectral
# clustering does: without it a few documents of the rarest words, huge after scaling, can outweigh a component.
_FREQUENCY_FLOOR = 0.1


@dataclass(frozen=True, eq=False)
class WordRange:
    """Leading directions of the scaled word pairs ``S M2 S``, M2 = E[x1 (x) x2], S = diag(scale).

    There are more of them than components were asked for (slack), and the product of M2 with each is known: every
    `whitener` of at most that many components follows without a further pass.

    Attributes
    ----------
    frequencies : WordFrequencies
        M1 and the lengths of the documents.
    scale : (d,) array
        About ``M1 ** -word_scale``, see `frequency_scale`; 0 for words that never occur.
    space, images : (d, m) arrays
        Orthonormal columns, and ``S M2 S @ space``.
    rotation : (m, m) array
        ``space @ rotation`` are the Ritz vectors of ``S M2 S``, best first.
    spectrum : (m,) array
        Ritz values, descending: eigenvalues where the vocabulary is small, estimates from within elsewhere.
    n_passes : int
        How often the source was read.
    work_eps : float
        Machine epsilon of the products.
    """

    frequencies: WordFrequencies
    scale: Array = field(repr=False)
    space: Array = field(repr=False)
    images: Array = field(repr=False)
    rotation: Array = field(repr=False)
    spectrum: Array = field(repr=False)
    n_passes: int
    work_eps: float = field(repr=False)

    def directions(self, n_directions: int | None = None) -> Array:
        """The first Ritz vectors, or all of them: orthonormal columns."""
        from odeco.kernels.products import tall_product

        return tall_product(self.space, self.rotation[:, :n_directions])

    def whitener(self, n_components: int) -> Whitener:
        """Whiten the first ``n_components`` directions: ``W^T M2 W = I``, lifted back through the scale."""
        from odeco.kernels.products import scaled_rows, tall_product

        check_n_components(n_components, len(self.scale))
        if n_components > len(self.spectrum):
            raise ValueError(f"n_components={n_components} is larger than the {len(self.spectrum)} directions found.")
        check_spectrum(self.spectrum, n_components, tolerance=10 * self.work_eps, allow_indefinite=True)
        scaled = self.rotation[:, :n_components] / np.sqrt(self.spectrum[:n_components])
        matrix = scaled_rows(tall_product(self.space, scaled), self.scale)
        # M2 W: for exact eigenvectors S^-1 U D^(1/2), otherwise half a power iteration better than that.
        unscale = np.where(self.scale > 0, self.scale, np.inf)
        lift = scaled_rows(tall_product(self.images, scaled), 1 / unscale)
        return Whitener(matrix, lift, self.spectrum)

    def basis(self, n_directions: int | None = None) -> Array:
        """``S U`` for the first directions U: the fixed basis on which a stream accumulates its moments."""
        return self.scale[:, None] * self.directions(n_directions)


def word_range(X: Any, n_components: int, **options: Any) -> WordRange:
    """Leading directions of the word pairs of X, anything `odeco.sources.as_source` takes: `range_passes` made over it,
    with the same options.
    """
    source = as_source(X)
    return run_passes(range_passes(source.n_features, n_components, **options), source)


def range_passes(
    n_features: int,
    n_components: int,
    *,
    word_scale: float = 0.5,
    n_oversamples: int = 10,
    n_products: int = 3,
    dtype: DTypeLike = np.float32,
    random_state: RandomState = None,
) -> Passes[WordRange]:
    """The passes that find the leading directions of word pairs, scaled by word frequency.

    Block Krylov: each product of M2 with ``n_components + n_oversamples`` vectors is one pass; all blocks after the
    first, random one stay in the space, about ``(n_products - 1) * (n_components + n_oversamples)`` directions.
    The first pass finds the frequencies too, so the random block is not scaled by them: it leans towards frequent
    words, and the space comes closer to the leading directions than with a scaled one. Vocabularies of up to 500 words,
    or no larger than that space, are treated exactly, in one pass.

    Parameters
    ----------
    n_features : int
        Words d of the source that the passes are run on.
    n_components : int
    word_scale : float
        s: words are scaled by about ``M1 ** -s`` on both sides before the directions are found. 0 is the paper's
        whitening; 1/2 gives every word the same variance, as in correspondence analysis.
    n_oversamples : int
        Extra columns of the random block.
    n_products : int
        Products with M2, at least 2.
    dtype : float32 or float64
        Of the products over the data.
    random_state : int, Generator, RandomState or None
    """
    _check_options(word_scale, n_oversamples, n_products, dtype)
    first = yield first_look(n_features, n_components, n_oversamples, n_products, dtype, random_state)
    return (yield from directions(first, word_scale, n_products))


def first_look(
    n_features: int,
    n_components: int,
    n_oversamples: int = 10,
    n_products: int = 3,
    dtype: DTypeLike = np.float32,
    random_state: RandomState = None,
) -> FrequenciesAndPairs:
    """Sums for the first pass of `range_passes`: frequencies, and the product with a random block or all of M2."""
    d = n_features
    check_n_components(n_components, d)
    width = min(n_components + n_oversamples, d)
    if d <= max(_SMALL_VOCABULARY, width * (n_products - 1)):
        return FrequenciesAndPairs(np.eye(d))
    return FrequenciesAndPairs(as_generator(random_state).standard_normal((d, width)).astype(dtype))


def directions(first: FrequenciesAndPairs, word_scale: float, n_products: int = 3) -> Passes[WordRange]:
    """The other passes: once the first was made, they may be made at several scales."""
    from odeco.kernels.products import scaled_rows

    start, scale = first.pairs.basis, frequency_scale(first.frequencies.mean, word_scale)
    image = first.pairs.product
    scaled_rows(image, scale, out=image)
    exact = start.shape[0] == start.shape[1]
    if exact:
        space, images = np.asarray(start, np.float64), image * scale
    else:
        space, images = yield from _krylov(image, scale, n_products - 1, start.dtype)
    spectrum, rotation = _ritz(space, images)
    n_passes, eps = 1 if exact else n_products, float(np.finfo(start.dtype).eps)
    return WordRange(first.frequencies, scale, space, images, rotation, spectrum, n_passes, eps)


def whiten_words(X: Any, n_components: int, **options: Any) -> Whitener:
    """The whitener of E[x1 (x) x2] of a source of counts: ``word_range(X, n_components, **options).whitener(...)``."""
    return word_range(X, n_components, **options).whitener(n_components)


def frequency_scale(frequencies: Array, word_scale: float) -> Array:
    """``(frequencies + 0.1 / d) ** -word_scale``, 0 for words that never occur."""
    floor = _FREQUENCY_FLOOR / len(frequencies)
    return np.where(frequencies > 0, (frequencies + floor) ** -word_scale, 0.0)


def orthonormalize(block: Array) -> Array:
    """An orthonormal basis of the columns, by two rounds over the Gram matrix.

    Cholesky QR made rank revealing: LAPACK's QR of a tall block is several times slower than a product with its own
    transpose. Two rounds bring the loss of orthogonality from the square of the condition number down to rounding.
    """
    from odeco.kernels.products import tall_inner, tall_product

    for _ in range(2):
        values, vectors = np.linalg.eigh(tall_inner(block, block))
        kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
        block = tall_product(block, vectors[:, kept] / np.sqrt(values[kept]))
    return block


def _krylov(image: Array, scale: Array, n_blocks: int, dtype: DTypeLike) -> Passes[tuple[Array, Array]]:
    """An orthonormal basis of the Krylov space of ``S M2 S`` that begins with an image, and the image of that space."""
    from odeco.kernels.alignment import zero_lines
    from odeco.kernels.products import scaled_rows, side_by_side, tall_inner, tall_remainder

    blocks: list[Array] = []
    images: list[Array] = []
    for _ in range(n_blocks):
        for _ in range(2):  # twice is enough for orthogonality to the blocks before
            for block in blocks:
                image = tall_remainder(image, block, tall_inner(block, image))
        blocks.append(orthonormalize(image))
        # S M2 S @ block, one pass.
        pairs = yield WordPairs(scaled_rows(blocks[-1], scale, zero_lines(blocks[-1].shape, dtype)))
        image = pairs.product
        scaled_rows(image, scale, out=image)
        images.append(image)
    return side_by_side(blocks), side_by_side(images)


def _ritz(space: Array, images: Array) -> tuple[Array, Array]:
    """Ritz values of the space, descending, and the rotation to its Ritz vectors."""
    from odeco.kernels.products import tall_inner

    projected = tall_inner(space, images)
    values, vectors = np.linalg.eigh((projected + projected.T) / 2)
    return values[::-1].copy(), vectors[:, ::-1].copy()


def _check_options(word_scale: float, n_oversamples: int, n_products: int, dtype: DTypeLike) -> None:
    if not 0 <= word_scale <= 1:
        raise ValueError(f"word_scale must be between 0 and 1, got {word_scale}.")
    if n_oversamples < 0:
        raise ValueError(f"n_oversamples must be at least 0, got {n_oversamples}.")
    if n_products < 2:
        raise ValueError(f"n_products must be at least 2, got {n_products}.")
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}.")
