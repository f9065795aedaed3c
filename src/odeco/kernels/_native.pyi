"""The compiled loops: what each computes, and the shapes of its arrays. Sources and build: ``native/``.

All arrays are C-contiguous and of exactly the dtypes given here; outputs are written in place. Everything is checked
before it is used: a wrong dtype or number of axes is a TypeError, a wrong shape a ValueError, an index that points
outside an IndexError. The interpreter lock is released while they run. ``Floats`` are float32 or float64, the same for
all arrays of a call. Functions with ``start`` and ``stop`` work on these rows of a CSR matrix (``indptr``, ``columns``,
``values``), so that threads can share the rows; every thread that scatters needs an output of its own.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Flags = NDArray[np.uint8]
Lexicon = tuple[Int32s, Int64s, NDArray[np.uint64]]

instruction_set: Final[str]
CVB0_FLOOR: Final[float]
CVB0_LEAST_REST: Final[float]
LANES: Final[int]
PAD: Final[int]

# Products of a CSR matrix C with tall dense blocks. Blocks that are read from or added to here and there may be wider
# than the rows that they give or take.

def project_rows(
    indptr: Int64s, columns: Int32s, values: Floats, block: Floats, start: int, stop: int, out: Floats, /
) -> None:
    """``out = C[start:stop] @ block``."""

def scatter_rows(
    indptr: Int64s,
    columns: Int32s,
    values: Floats,
    weights: Floats,
    rows: Floats,
    start: int,
    stop: int,
    out: Floats,
    /,
) -> None:
    """``out += C[start:stop].T @ (weights[start:stop, None] * rows)``."""

def gram_rows(
    indptr: Int64s, columns: Int32s, values: Floats, weights: Floats, block: Floats, start: int, stop: int,
    out: Floats, /,
) -> None:  # fmt: skip
    """``out += C.T @ (weights[:, None] * (C @ block))`` over the rows start to stop, in one sweep."""

def posterior_rows(
    indptr: Int64s, columns: Int32s, values: Floats, weights: Doubles, logs: Doubles, log_weights: Doubles, start: int,
    stop: int, totals: Doubles, out: Doubles, /,
) -> float:  # fmt: skip
    """The E step of a mixture of multinomials over the rows start to stop, `logs` of its topics word by word (d, k).

    Adds the posteriors p, times weights (n,), to `totals` (k,) and ``C.T @ p`` to `out` (d, k); the log-likelihood.
    """

def posterior_sets(
    indptr: Int64s, columns: Int32s, values: Floats, weights: Doubles, logs: Doubles, log_weights: Doubles, start: int,
    stop: int, totals: Doubles, out: Doubles, likelihoods: Doubles, /,
) -> None:  # fmt: skip
    """The same for m mixtures at once: `logs` (d, m * k) and `out` side by side, `log_weights` and `totals` (m, k).

    Their log-likelihoods are added to `likelihoods` (m,).
    """

def weighted_column_sums(indptr: Int64s, columns: Int32s, values: Floats, weights: Doubles, out: Doubles, /) -> None:
    """``out += C.T @ weights``, in double precision."""

# Documents whose topics are known. Topics are stored word by word, (d, k): one nonzero reads one row. A document
# depends on nothing but its own row, the topics and the prior.

def infer_rows(
    indptr: Int64s, columns: Int32s, values: Floats, topics: Floats, alpha: Floats, start: int, stop: int, n_iter: int,
    tol: float, strengths: Floats, /,
) -> None:  # fmt: skip
    """EM for the proportions of each document, topics fixed: N_k = alpha_k + sum_w c_w phi_wk, in ``strengths`` (n, k).

    Starts from what ``strengths`` holds and ends when no proportion moves by more than ``tol``.
    """

def infer_steps(
    indptr: Int64s, columns: Int32s, values: Floats, topics: Floats, alpha: Floats, start: int, stop: int, n_iter: int,
    strengths: Floats, /,
) -> None:  # fmt: skip
    """`n_iter` steps of EM for the proportions of each document, and nothing else."""

def em_rows(
    indptr: Int64s, columns: Int32s, values: Floats, topics: Floats, alpha: Floats, start: int, stop: int, n_iter: int,
    variational: bool, row_weights: Floats, strengths: Floats, word_counts: Floats, /,
) -> float:  # fmt: skip
    """`n_iter` EM (or variational) steps for the proportions of each document, topics fixed.

    A step takes r_wk proportional to t_k topics[w, k], t = N + alpha (or exp(digamma(N + alpha))), and N_k = sum_w c_w
    r_wk, in ``strengths``. The last step's c_w r_wk, times the weight of the document, are added to ``word_counts``.
    Returned is the likelihood part of the objective before that step: the sum of c_w log(sum_k t_k topics[w, k]).
    """

def cvb0_rows(
    indptr: Int64s, columns: Int32s, values: Floats, topics: Floats, own_word: Floats, alpha: Floats, start: int,
    stop: int, n_em: int, n_iter: int, echo: bool, row_weights: Floats, strengths: Floats, spreads: Floats,
    word_counts: Floats, /,
) -> None:  # fmt: skip
    """`n_em` steps of EM, then `n_iter` of CVB0: responsibilities from counts that leave the word's own counts out.

    With N = strengths + alpha and phi = topics, r_k = (N_k - m_k c r_k) (phi_k - c r_k own_word_k) / Z, solved for r to
    first order: r_k proportional to N_k phi_k / (Z + c (m_k phi_k + N_k own_word_k)), where at least `CVB0_FLOOR` of Z
    is left. No responsibility is stored, so nothing grows with the nonzeros.

    m_k = 1 takes out the word's own counts, as CVB0 does. The other words of the document have moved with them, by a
    share chi_k = sum_w c_w r_wk (1 - r_wk) / N_k, those again by chi_k, and so on: with `echo` m_k = 1 / (1 - chi_k)
    takes all this out too, up to 1 / `CVB0_LEAST_REST`. A few steps are meant: settled to the end, documents of few
    words become too flat. ``spreads`` hold the sums of c r (1 - r).
    ``own_word`` is 1 / (n_k + d eta), or 0 where the documents have no part in the topics.
    """

def smoothed_log_likelihood(
    indptr: Int64s, columns: Int32s, values: Floats, word_counts: Floats, mixing: Floats, eta: float, /
) -> float:
    """sum c_dw log(sum_k mixing[d, k] (word_counts[w, k] + eta)) over all nonzeros."""

def mix_rows(fresh: Floats, old: Floats, share: float, out: Floats, totals: Doubles, /) -> None:
    """``out = fresh + share * old`` (n, width), and its sums over rows are added to `totals` (width,)."""

def smooth_rows(word_counts: Floats, eta: float, inverse: Floats, out: Floats, /) -> None:
    """``out = (word_counts + eta) * inverse`` (n, width); `out` may be the word counts themselves."""

def gibbs_rows(
    indptr: Int64s, columns: Int32s, values: Floats, topics: Floats, alpha: Floats, uniforms: Doubles,
    assignments: Int64s, strengths: Floats, /,
) -> None:  # fmt: skip
    """One Gibbs sweep over tokens with the topics fixed: a new topic for each, given all others of its document.

    A token at position p weighs ``values[p]``; an assignment below 0 has not been made yet.
    """

def log_likelihood_rows(
    indptr: Int64s, columns: Int32s, values: NDArray[np.float32], topics: Doubles, proportions: Doubles, start: int,
    stop: int, out: Doubles, /,
) -> None:  # fmt: skip
    """sum_w c_w log(sum_k theta_k topics[w, k]) of each document, in ``out``."""

# Hidden Markov models, `LANES` stretches of the data in lockstep: `odeco.kernels.hmm` says how the data are cut.

def forward(
    rows: Doubles, scales: Doubles, index: Int32s, first: Flags, weights: Doubles, transposed: Doubles, start: Doubles,
    begin: int, length: int, burn: int, message: Doubles, alphas: Doubles, norms: Doubles, log_likelihoods: Doubles, /,
) -> None:  # fmt: skip
    """Filtered probabilities of each step of each lane, in ``alphas[1:]``; those of the step before in ``alphas[0]``.

    ``message`` (kp, LANES) is that of the step before the first, ``burn`` steps included, and becomes that of the last.
    ``norms`` get the inverse of each step's normalization. With one row of ``alphas`` only the log-likelihoods (LANES,)
    are kept. ``transposed`` (kp, k) is the transition matrix with columns that sum to 1, the paper's T.
    """

def backward(
    rows: Doubles, index: Int32s, first: Flags, weights: Doubles, transmat: Doubles, begin: int, length: int, burn: int,
    message: Doubles, alphas: Doubles, norms: Doubles, target: Int32s, row_sums: Doubles, start_sums: Doubles,
    pair_sums: Doubles, used: Doubles, /,
) -> None:  # fmt: skip
    """Posteriors of each step, added to ``row_sums[target[t]]``, those of first steps to ``start_sums``; transitions.

    ``pair_sums`` (kp, kp, LANES) get sum_t alpha_{t-1}(i) b_t(j) beta_t(j) / c_t, to be multiplied by the transition
    matrix (kp, k). ``message`` is that of the last step, or of ``burn`` steps after, and becomes that of the step
    before the first; ``used`` gets the one of the last step.
    """

def advance(rows: Doubles, index: Int32s, first: Flags, transmat: Doubles, start: Doubles, message: Doubles, /) -> None:
    """Carry one filtered distribution (k,) through all given steps, in order."""

def retreat(rows: Doubles, index: Int32s, first: Flags, transmat: Doubles, message: Doubles, /) -> None:
    """Carry one backward message (k,) from the last given step to the one before the first; it sums to 1."""

# The same on short data, from one step to the next; the first step begins a sequence.

def expect_short(
    rows: Doubles, scales: Doubles, index: Int32s, first: Flags, weights: Doubles, transmat: Doubles, start: Doubles,
    row_sums: Doubles, start_sums: Doubles, transitions: Doubles, /,
) -> float:  # fmt: skip
    """The log-likelihood; ``row_sums`` (m, k) get the posteriors by row, ``start_sums`` (k,) those of first steps.

    ``transitions`` (k, k) get the expected ones; ``transmat`` is (k, k). Empty ``scales`` are 0, empty ``weights`` 1.
    """

def climb_symbols(
    index: Int32s, first: Flags, weights: Doubles, k: int, n_symbols: int, start: float, transitions: float,
    emissions: float, total: float, tol: float, patience: int, state: Doubles, seen: Doubles, /,
) -> int:  # fmt: skip
    """Accelerated Baum-Welch for symbols, ``n_symbols`` where one is missing; returns how many passes it took.

    ``state`` holds start (k,), transitions (k, k) and emissions (k, n_symbols), and becomes the best one seen.
    ``start``, ``transitions`` and ``emissions`` are their pseudo-counts. ``seen`` (most passes,) gets the objective,
    divided by ``total``, before each pass that was kept, NaN for one that was not.
    """

def climb_counts(
    index: Int32s, first: Flags, weights: Doubles, k: int, values: Doubles, base: Doubles, start: float,
    transitions: float, floor: float, total: float, tol: float, patience: int, state: Doubles, seen: Doubles, /,
) -> int:  # fmt: skip
    """The same for counts ``values`` (m, d), NaN where one is missing: ``state`` has rates (k, d), at least ``floor``.

    ``base`` (m,) is the part of their log densities that no rate enters.
    """

def best_paths(
    log_rows: Doubles, index: Int32s, first: Flags, log_transmat: Doubles, log_start: Doubles, scores: Doubles,
    origins: NDArray[np.uint8 | np.int32], /,
) -> float:  # fmt: skip
    """Viterbi scores through all given steps: ``scores`` (k,) of the step before become those of the last one.

    ``origins`` (steps, k) get the best state before each, for a way back; with no rows nothing is kept. Where a
    sequence begins, the one before ends in its best state; returns the sum of the best scores of the sequences that
    ended.
    """

def trace_back(origins: NDArray[np.uint8 | np.int32], state: int, path: Int64s, /) -> int:
    """States of the steps of ``origins``, whose last is ``state``; returns the state before the first."""

def best_scores(
    log_rows: Doubles, index: Int32s, first: Flags, log_transposed: Doubles, log_start: Doubles, begin: int,
    length: int, burn: int, scores: Doubles, kept: Doubles, /,
) -> None:  # fmt: skip
    """Viterbi scores of each step of each lane up to a constant, in ``kept[1:]``; of the step before in ``kept[0]``.

    As `forward`, in the algebra of maxima and sums: a lane that starts ``burn`` steps early has the right scores from
    where the best paths to all states have met.
    """

def trace_lanes(
    log_rows: Doubles, index: Int32s, first: Flags, log_transposed: Doubles, log_start: Doubles, begin: int,
    length: int, kept: Doubles, state: int, path: Int64s, /,
) -> tuple[int, float]:  # fmt: skip
    """The best path through the lanes, last lane first, to ``path``; ``state`` follows the last step, -1 for none.

    Returns the best state before the first step, -1 where a sequence begins there, and the log probability of the
    steps. The last argument of the state that follows is what `kept` makes of it: its best predecessor.
    """

# Consecutive symbols.

def add_triples(
    before: Int32s, middle: Int32s, after: Int32s, weights: Doubles, basis: Doubles, core: Doubles, /
) -> None:
    """Add ``sum w basis[before] (x) basis[middle] (x) basis[after]`` to ``core``, grouped by the middle symbol.

    An empty ``weights`` means 1 each.
    """

def products_at(rows: Int32s, columns: Int32s, left: Doubles, right: Doubles, out: Doubles, /) -> None:
    """``out[p] = left[rows[p]] . right[columns[p]]``: entries of a product of which few are needed."""

def walk(levels: Doubles, uniforms: Doubles, state: int, out: Int64s, /) -> None:
    """A Markov chain after ``state``, by inversion: ``levels`` are the rows of the transition matrix, summed up."""

# Samples.

def diagonal_rows(
    values: Doubles, center: Doubles, linear: Doubles, half: Doubles, constants: Doubles, least: float, rows: Doubles,
    scales: Doubles, /,
) -> None:  # fmt: skip
    """Densities in units of the largest in ``rows`` (m, k), not below ``exp(least)``; its logarithm in ``scales`` (m,).

    ``log p = sum_c constants[c, j] + v_c (linear[c, j] - v_c half[c, j])`` with v = values - center over the entries
    that are there; ``linear``, ``half`` and ``constants`` have shape (d, k).
    """

def diagonal_sums(
    values: Doubles, center: Doubles, weights: Doubles, totals: Doubles, first: Doubles, second: Doubles, /
) -> None:
    """Weights, weighted sums and sums of squares about the centre, each added to (k, d); NaN counts nowhere."""

def full_rows(
    values: Doubles, center: Doubles, triangles: Doubles, shifts: Doubles, constants: Doubles, least: float,
    out: Doubles, scales: Doubles, /,
) -> None:  # fmt: skip
    """Like `diagonal_rows`, of log densities constants[j] - |triangles[j] (value - center) + shifts[j]|^2 / 2.

    Lower triangles (k, d, d), shifts (k, d), constants (k,). Nothing may be missing.
    """

def full_sums(
    values: Doubles, center: Doubles, weights: Doubles, totals: Doubles, first: Doubles, second: Doubles, /
) -> None:
    """Weights (k,), weighted sums (k, d) and symmetric sums of products (k, d, d) about the centre; NaN is there."""

def normalize(joint: Floats, highest: Floats, totals: Floats, /) -> None:
    """Responsibilities in place of log joint densities (k, m), components in rows.

    ``highest`` gets the largest of each column and ``totals`` the sum of ``exp(joint - highest)``, (m,) each: the
    log-likelihood is ``highest + log(totals)``.
    """

def posterior_sums(
    features: Floats,
    start: int,
    stop: int,
    weights: Doubles,
    coefficients: Floats,
    offsets: Floats,
    sums: Doubles,
    totals: Doubles,
    highest: Floats,
    norms: Floats,
    /,
) -> None:
    """Add features (p, n) of the samples start to stop by their responsibilities to `sums` (K, p) and `totals` (K,).

    Log joint densities are ``coefficients @ features + offsets``, (K, p) and (K,); the K components are those of as
    many mixtures as `highest` has rows, in turn. ``highest + log(norms)``, (mixtures, stop - start), are the
    log-likelihoods. `weights` (n,) may be empty, for ones.
    """

def posterior_sums_of_rows(
    blocks: list[Floats],
    origins: list[Doubles],
    squares: list[bool],
    weights: Doubles,
    coefficients: Doubles,
    offsets: Doubles,
    sums: Doubles,
    totals: Doubles,
    highest: Doubles,
    norms: Doubles,
    /,
) -> None:
    """`posterior_sums` of samples whose features are made here: columns of blocks (n, d_b) less their origins (d_b,).

    Blocks are all of single or all of double numbers, their rows whole, any distance apart; an origin may be empty.
    Features are those of one block after the other, in each the values, then their squares where `squares` says so.
    """

def quadratic_densities(features: Floats, triangles: Floats, shifts: Floats, constants: Floats, out: Floats, /) -> None:
    """``out[j, t] = constants[j] - |triangles[j] y + shifts[j]|^2 / 2``, y the first d features (p, n) of sample t.

    Lower triangles (k, d, d), shifts (k, d), constants (k,).
    """

def quadratic_sums(
    features: Floats,
    weights: Doubles,
    triangles: Floats,
    shifts: Floats,
    constants: Floats,
    sums: Doubles,
    totals: Doubles,
    second: Doubles,
    highest: Floats,
    norms: Floats,
    /,
) -> None:
    """`posterior_sums` of such densities, `highest` and `norms` (1, n); `second` (k, d, d) gets sums of y y'.

    `second` must be symmetric. `weights` (n,) may be empty, for ones.
    """

def add_views(
    blocks: list[Floats],
    origins: list[Doubles],
    groups: Int32s,
    directions: Doubles,
    ranks: Int64s,
    weights: Doubles,
    first: Doubles,
    projected: Doubles,
    cross: Doubles,
    pairs: Doubles,
    triples: Doubles,
    /,
) -> None:
    """Add cross moments of views (n, d_t) less their origins, seen by three groups of them: y_g = sum_t x_t B_t.

    `directions` are all B_t (d_t, r_g), one after the other. `first` gets sums of all columns, `projected` those of all
    y_g, `cross` those of x_t (x) y_g (d_t, r_g) for each view t and both groups that it is not in; `pairs` those of
    y_0 (x) y_1, y_0 (x) y_2 and y_1 (x) y_2, `triples` those of all three, where they are not empty.
    """

def climb_tables(
    features: Doubles, weights: Doubles, overall: Doubles, total: float, prior: float, n_bernoulli: int, n_poisson: int,
    n_gaussian: int, blocks: Int64s, mask_of: Int32s, k: int, max_iter: int, tol: float, accelerate: bool,
    state: Doubles, values: Doubles, likelihoods: Doubles, seen: Doubles, counts: Int64s, /,
) -> tuple[int, bool]:  # fmt: skip
    """EM of mixtures of product distributions, SQUAREM where ``accelerate``: how many records, whether converged.

    ``features`` (P, n) are statistics in the order of `odeco.families.tables`, with means ``overall`` (P,); ``blocks``
    begin with 0 and say where the indicators of each categorical column end, ``mask_of`` which mask each Bernoulli
    column, count and number has, -1 for none. ``state`` (S, k (1 + Q)) has the weights and parameters of each mixture,
    and becomes what EM reaches; ``values`` and ``likelihoods`` (S,) are its log posteriors and log-likelihoods, divided
    by ``total``. ``seen`` and ``counts`` (max_iter + 1,) get the best value, and the steps taken by then.
    """

def add_counts(
    samples: Floats, start: int, stop: int, turn: Floats, weights: Doubles, halves: NDArray[np.int8], low: float,
    step: float, counts: Doubles, /,
) -> None:  # fmt: skip
    """Add outputs ``turn @ samples`` (k, n) of the samples start to stop, columns of (r, n), to the cells of a grid.

    `counts` (k, 2 n_cells, 2), the cells of both halves after one another, gets their weights, and their weights times
    where in the cell they lie. `weights` may be empty, for ones.
    """

def add_score_products(
    samples: Floats, start: int, stop: int, turn: Floats, weights: Doubles, halves: NDArray[np.int8], low: float,
    step: float, tables: NDArray[np.float32], out: Doubles, /,
) -> None:  # fmt: skip
    """Add sums (k + 1, 2 k + 1) over samples of scores and ones times outputs, scores and ones.

    Scores are piecewise linear functions of the outputs, constant beyond the grid; `tables` is (k, 2 n_cells).
    """

def centred_columns(rows: Floats, start: int, stop: int, origin: Floats, out: Floats, /) -> None:
    """The rows start to stop of (n, d), less the origin (d,), which may be empty, as columns: `out` (d, stop - start).

    Rows are whole, with any distance between them; those of double numbers may become columns of single ones.
    """

def add_cubes(first: Floats, second: Floats, third: Floats, weights: Doubles, sums: Doubles, /) -> None:
    """Add sums of products of three coordinates, one of each block (n, k_t) of samples, to `sums` (k_1, k_2, k_3).

    Blocks may be wider, their rows any distance apart. Of blocks that are the same array every pair is there once:
    where the first two are, entries with a <= b are filled, where the last two are those with b <= c; others may hold
    anything. `weights` (n,) may be empty, for ones.
    """

# Steps and their features. A map is center (d,), axes (d, d), knots (q, d) and products (m, 2), as in
# `odeco.moments.sequence_features.FeatureMap`. Of n steps the first `n_own` count; neighbours may follow them, with
# which the last ones make pairs and triples. `first` is 1 where a sequence begins, and `weights` may be empty, for
# ones; a pair and a triple count as the least of their steps.

def project_steps(
    values: Doubles, center: Doubles, axes: Doubles, knots: Doubles, products: Int64s, coefficients: Doubles,
    offsets: Doubles, out: Doubles, /,
) -> None:  # fmt: skip
    """out[i, t] = offsets[i] + <coefficients[i], features of values[t]>; values (n, d), NaN where one is missing."""

def add_step_pairs(
    values: Doubles, first: Flags, weights: Doubles, n_own: int, center: Doubles, axes: Doubles, knots: Doubles,
    products: Int64s, total: Doubles, square: Doubles, lagged: Doubles, added: Doubles, /,
) -> None:  # fmt: skip
    """Add features (f,), their products (f, f) with themselves, and with those of the next step.

    `square` must be symmetric. `added` (2,) gets the weights of steps and of pairs.
    """

def add_step_triples(
    values: Doubles, first: Flags, weights: Doubles, n_own: int, z: Doubles, center: Doubles, pairs: Doubles,
    triples: Doubles, begun: Doubles, seen: Doubles, sums: Doubles, seen_products: Doubles, products: Doubles,
    added: Doubles, /,
) -> None:  # fmt: skip
    """Add products of z (k, n) of consecutive steps, and z of first steps, `begun` (k,).

    Of middle steps also values about the centre, `sums` (2k, d), and their squares (2k, d, 1) or products (2k, d, d),
    each times z of the step before and then z of the one after; `seen` and `seen_products` say with how much of it. The
    products must be symmetric. `added` (3,) gets the weights of pairs, of triples and of first steps.
    """

def add_row_products(rows: Floats, origin: Doubles, weights: Doubles, out: Doubles, /) -> None:
    """Add sums (d + 1, d + 1) of products of a one and the numbers of every row (n, d), about `origin` (d,).

    `weights` may be empty, for ones. Sums are in double precision.
    """

def whiten_rows(rows: Floats, origin: Floats, turn: Floats, start: int, out: Floats, /) -> None:
    """``out[:, start : start + n] = turn @ (rows - origin).T`` of rows (n, d), with `turn` (r, d).

    Rows and origin are of one type, in which they are centred; `turn` and `out` of one that may be another.
    """

def add_second(samples: Floats, start: int, stop: int, weights: Doubles, second: Doubles, /) -> None:
    """Add sums (r, r) of products of two coordinates of the samples start to stop, columns of (r, n).

    `weights` may be empty, for ones.
    """

def add_fourth(samples: Floats, start: int, stop: int, weights: Doubles, second: Doubles, fourth: Doubles, /) -> None:
    """Add sums of products of two and of four coordinates of the samples start to stop, columns of (r, n).

    `second` (r, r) gets those of i <= j, `fourth` (p, p) those of pairs i <= j and k <= l in the order of
    np.triu_indices(r), where j <= k: every multiset once. `weights` may be empty, for ones.
    """

def smoothing_splines(masses: Doubles, right: Doubles, penalties: Doubles, out: Doubles, /) -> None:
    """out[l, i] = (diag(masses[i]) + penalties[l] D'D)^-1 right[i], D the second differences."""

def iterate_frame(
    tensor: Doubles, order: int, n_iter: int, tol: float, shift: float, frame: Doubles, values: Doubles,
    mapped: Doubles, /,
) -> tuple[int, float]:  # fmt: skip
    """Orthogonal iteration on a small symmetric tensor (n^order,): iterations, and the last change of a column.

    ``frame`` (n, r) becomes the last one; ``values`` (r,) and ``mapped`` (n, r) belong to the one before it. No
    iterations, and a frame in between, where a matrix was close to singular: the SVD is not here.
    """

def jacobi_sweep(stack: Doubles, frame: Doubles, /) -> float:
    """One sweep over all pairs (p, q) of symmetric matrices stack[:, :, l], in place; returns the largest |sin|."""

# Text: `odeco.kernels.tokens` says what a lexicon is.

def spell_tokens(
    text: NDArray[np.integer[Any]], ends: Int64s, letter_of: NDArray[np.uint32], digests: Int64s, lengths: Int64s,
    spelling: NDArray[np.uint64], token_ends: Int64s, /,
) -> int:  # fmt: skip
    """The tokens of documents, runs of two word characters or more: hash, length and spelling. Returns their number.

    `letter_of` maps a code point (uint8 or uint32) to its letter (in lower case, say), 0 where it is no word character.
    """

def number_words(
    digests: Int64s, lengths: Int64s, words: NDArray[np.uint64], lexicon: Lexicon, used: Int64s, frozen: bool,
    numbers: Int64s, state: Int64s, /,
) -> bool:  # fmt: skip
    """Numbers of words, given by hash, length and spelling (one after the other in `words`). True when all is done.

    New words are added; `frozen`: they get -1 and the lexicon stays as it is. `state` is where to go on: word, place in
    `words`.
    """

def drop_stop_words(numbers: Int64s, token_ends: Int64s, n_stop: int, /) -> int:
    """Take the first `n_stop` entries out of the tokens of documents, in place. The number of those that stay."""

def join_grams(
    tokens: Int64s, token_ends: Int64s, least: int, most: int, lexicon: Lexicon, used: Int64s, frozen: bool,
    grams: Int64s, gram_ends: Int64s, state: Int64s, /,
) -> bool:  # fmt: skip
    """Numbers of all n-grams of `least` to `most` tokens, -1 where a frozen lexicon does not know one.

    `state` is where to go on: document, token, n-grams written. True when all is done.
    """

def count_documents(
    tokens: Int64s, token_ends: Int64s, n_stop: int, n_before: int, tally: Int64s, entries: Int32s, counts: Int32s,
    row_ends: Int64s, /,
) -> int:  # fmt: skip
    """Each document's distinct entries and how often they occur, in the order of their first occurrence.

    Unknown words (-1) and the first `n_stop` entries are left out. `n_before` documents came before these. `tally`
    (m, 4) remembers of each entry its last document (from 1), the place of its count there, its documents and its
    occurrences. Returns the number of counts.
    """

def sorted_rows(
    entries: Int32s, counts: NDArray[np.integer[Any]], row_ends: Int64s, column_of: Int32s, n_columns: int,
    columns: Int32s, values: Int64s, ends: Int64s, /,
) -> int:  # fmt: skip
    """Rows of a matrix: columns in ascending order, entries without a column (-1) left out. Returns the size."""

def add_grams(words: Int64s, ends: Int64s, lexicon: Lexicon, used: Int64s, numbers: Int64s, /) -> None:
    """Numbers of n-grams that are given by the numbers of their words; there must be room for all their parts."""

def merge_grams(other: Int64s, lexicon: Lexicon, used: Int64s, renamed: Int64s, /) -> None:
    """Add the n-grams of another lexicon's entries, for which there must be room.

    `renamed` has the numbers of its words here, and gets those of its n-grams; their parts come before them.
    """

def rehash(entries: Int64s, n: int, slots: Int32s, /) -> None:
    """Put the first n entries into an empty table."""

# Numbers in text: `odeco.kernels.numbers` says what kinds there are.

def read_numbers(
    text: Flags, whole: Int64s, decimal: Doubles, kinds: Flags, after: Flags, begins: NDArray[np.integer[Any]],
    long_decimals: Flags, /,
) -> tuple[int, int, int]:  # fmt: skip
    """All numbers of lines that end in newlines: how many, where the first fault is (-1: nowhere), the bytes of
    `long_decimals`.

    Numbers are apart by blanks, or by one colon without blanks. Lines without numbers are passed over. Decimals that
    are too long go to `long_decimals`, a newline behind each. For a word `whole` holds the place behind it.
    """
