"""The mutations: what is made wrong, and the tests that must notice.

Add one beside every new formula. The old text must stand exactly once in its file; a formula that has moved takes its
entry along. The tests should be few and quick, and see the formula through what a user sees where they can.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A wrong formula."""

    file: str  # below src/odeco
    old: str
    new: str
    tests: str  # below tests; several are separated by spaces


TOPICS = "unit/models/test_topic_moments.py"
POISSON = "unit/models/test_fixed_points.py::test_poisson_rates_are_mean_counts"
NO_COUNTS = "unit/models/test_fixed_points.py::test_a_state_without_counts_has_a_rate_near_zero_and_excludes_nothing"
STATES = "unit/models/test_fixed_points.py::test_gaussian_states_have_the_moments_of_their_steps_and_the_prior"
ONE_POINT = "unit/models/test_fixed_points.py::test_a_component_on_one_point_has_the_least_variance"
ONE_VALUE = "unit/models/test_fixed_points.py::test_a_state_on_one_value_has_the_least_variance"
SYMBOLS = "unit/models/test_fixed_points.py::test_symbols_and_transitions_are_counted_with_pseudo_counts"
MERGERS = "unit/models/test_chain_landscape.py::test_a_merger_costs_what_the_expected_likelihood_loses"
SPLITS = "unit/models/test_chain_landscape.py::test_splitting_keeps_totals"
VIEWS = "unit/models/test_fixed_points.py::test_views_have_the_moments_of_their_samples"
CRITERIA = "unit/models/test_criteria.py::test_free_parameters"
DIRICHLET = "unit/moments/test_dirichlet.py"
REDUCTION = "theorems/test_whitening_reduction.py"
SPHERES = "theorems/test_theorems_3_2_and_3_3.py"
WORDS = "unit/moments/test_words.py"
VECTORS = "unit/moments/test_vectors.py"
CUMULANTS = "unit/moments/test_cumulants.py"
NOISE = "unit/test_noise.py"

MUTATIONS = [
    # Documents: their weights, tuples of their words, Theorem 3.5
    Mutation("sources/documents.py", "(batch.lengths + half_length)) ** 2", "(batch.lengths + half_length))", TOPICS),
    Mutation("models/topics/moments.py", "HALF_LENGTH = 100.0", "HALF_LENGTH = 50.0", TOPICS),
    Mutation("models/topics/moments.py", "source.map(weigh_by_length(half_length))", "source", TOPICS),
    Mutation(
        "models/topics/stream.py", "weighed = weigh_by_length(self.half_length)(batch)", "weighed = batch", TOPICS
    ),
    Mutation("moments/words.py", "batch.lengths - taken, 1.0)", "batch.lengths, 1.0)", WORDS),
    Mutation("moments/dirichlet.py", "m2 - alpha0 / (alpha0 + 1)", "m2 - alpha0 / (alpha0 + 2)", DIRICHLET),
    Mutation("moments/dirichlet.py", "mixed = alpha0 / (alpha0 + 2)", "mixed = alpha0 / (alpha0 + 3)", DIRICHLET),
    Mutation("moments/dirichlet.py", "m2 - 2 * alpha0 / (3 *", "m2 - alpha0 / (3 *", DIRICHLET),
    Mutation("moments/dirichlet.py", "2 * alpha0**2 / ((alpha0 + 2)", "alpha0**2 / ((alpha0 + 2)", DIRICHLET),
    Mutation(
        "models/topics/theorem.py",
        "ratio=2.0 / (alpha0 + 2.0)",
        "ratio=1.0",
        "theorems/test_theorems_3_1_and_3_5.py::test_population_moments_give_topics_and_weights_back",
    ),
    Mutation("models/topics/theorem.py", "_IDENTIFIED * np.median(values)", "np.inf", TOPICS),
    Mutation("models/topics/theorem.py", "_IDENTIFIED * np.median(values)", "0.0", TOPICS),
    Mutation("completion.py", "np.exp(-total / n_words)", "np.exp(-total / (2 * n_words))", "unit/test_completion.py"),
    # Whitening and recovery (section 4.3), and what noise shows
    Mutation("whitening/whitener.py", "np.sqrt(eigenvalues[:n_components])", "eigenvalues[:n_components]", REDUCTION),
    Mutation("whitening/whitener.py", "lift = top * roots /", "lift = top / roots /", REDUCTION),
    Mutation("recovery.py", "weights = (ratio / values) ** 2", "weights = ratio / values", REDUCTION),
    Mutation("whitening/noise.py", "signs * scaled / 2", "signs * scaled", NOISE),
    Mutation("whitening/noise.py", "np.sqrt(usable.size / max(n_documents, 1))", "1.0", NOISE),
    Mutation(
        "models/gaussian_mixture/moments.py", "float(self.noise_variance *", "float(2 * self.noise_variance *", NOISE
    ),
    # Decomposition
    Mutation(
        "decomposition/orthogonal.py",
        "step * (strength / (np.abs(step).max() * np.abs(strength).max() or 1.0))",
        "step / np.abs(step).max()",
        "unit/decomposition/test_decompose.py::test_auto_ends_at_the_best_orthonormal_fit",
    ),
    Mutation(
        "decomposition/orthogonal.py",
        "(inner - inner.T) / (strengths[:, None] + strengths)",
        "(inner - inner.T) / (2 * strengths)",
        "unit/decomposition/test_decompose.py::test_auto_ends_at_the_best_orthonormal_fit",
    ),
    # Gaussian mixtures (Theorems 3.2 and 3.3)
    Mutation("models/gaussian_mixture/moments.py", "core = whitened - noise -", "core = whitened -", SPHERES),
    Mutation("models/gaussian_mixture/moments.py", "(moments.radial - inside)", "moments.radial", SPHERES),
    Mutation("models/gaussian_mixture/moments.py", "/ (self.dimension - r))", "/ self.dimension)", SPHERES),
    Mutation("moments/vectors.py", "- 2 / 3 * np.outer(c, c)", "- np.outer(c, c)", VECTORS),
    Mutation(
        "refinement/gaussian_mixture.py",
        "means = np.where(seen[:, None], sums.features[:, :p] / safe[:, None], old.means)",
        "means = sums.features[:, :p] / safe[:, None]",
        "unit/refinement/test_gaussian_mixture.py::test_a_component_without_rows_keeps_its_place",
    ),
    Mutation(
        "refinement/gaussian_mixture.py",
        "np.where(seen[:, None], within, old.covariances), floor)",
        "within, floor)",
        "unit/refinement/test_gaussian_mixture.py::test_a_component_without_rows_keeps_its_place",
    ),
    Mutation(
        "refinement/gaussian_mixture.py", "old.covariances), float(floor.mean())", "old.covariances), 0.0", ONE_POINT
    ),
    Mutation("refinement/gaussian_mixture.py", "np.maximum(values, 1)) @", "np.maximum(values, 2)) @", ONE_POINT),
    # ICA (Theorem 3.4)
    Mutation("moments/cumulants.py", "- 3 * mapped *", "- 2 * mapped *", CUMULANTS),
    Mutation(
        "models/ica/solve.py",
        "np.sqrt(24 / task.n_samples)",
        "np.sqrt(96 / task.n_samples)",
        "unit/models/test_ica.py::test_the_kurtosis_floor_is_a_little_above_what_gaussian_data_show",
    ),
    Mutation(
        "models/ica/solve.py",
        "np.abs(kurtosis) / variances**2 > floor",
        "np.abs(kurtosis) > floor",
        "unit/models/test_ica.py::test_noise_of_the_outputs_counts_against_a_source",
    ),
    Mutation(
        "models/ica/solve.py",
        "entries * 24 / task.n_samples",
        "entries * 1e9 / task.n_samples",
        "unit/models/test_ica.py::test_sources_of_equal_variances_are_not_called_noise",
    ),
    Mutation(
        "models/ica/whitening.py",
        "(np.sqrt(group.size) + 3)",
        "(np.sqrt(group.size) - 3)",
        "unit/models/test_ica.py::test_sources_are_those_of_the_right_number_whatever_number_was_asked_for",
    ),
    Mutation(
        "refinement/ica_stretches.py",
        "[sources[:, j], sources[:, i], np.ones_like(residual)]",
        "[sources[:, i], sources[:, j], np.ones_like(residual)]",
        "unit/refinement/test_ica_stretches.py",
    ),
    Mutation(
        "refinement/ica_likelihood.py",
        "(left[:, None] + left + curvature**2)",
        "(left[:, None] + left + 1)",
        "unit/refinement/test_ica_stretches.py",
    ),
    # Views and crowds (Theorem 3.6)
    Mutation(
        "symmetrization/theorem.py",
        "maps[b] = square.pair(pivot, a) @ inverse.T",
        "maps[b] = square.pair(pivot, a) @ inverse",
        "theorems/test_theorem_3_6.py::test_population_moments_give_weights_and_means_of_all_views_back",
    ),
    Mutation(
        "moments/crowd.py",
        "np.eye(self.n_classes), -average]",
        "np.eye(self.n_classes), 0 * average]",
        "unit/moments/test_crowd.py",
    ),
    Mutation("moments/crowd.py", "sums / np.maximum(totals, 1)", "sums", "unit/moments/test_crowd.py"),
    Mutation(
        "refinement/views.py",
        "np.where(seen[:, None], mean, old.means[t])",
        "mean",
        "unit/refinement/test_views.py::test_a_component_without_samples_keeps_its_place",
    ),
    Mutation("refinement/views.py", "squares / totals - (mean - center) ** 2", "squares / totals", VIEWS),
    Mutation(
        "refinement/dawid_skene.py",
        "weights = self.totals + smoothing",
        "weights = self.totals + 100 * smoothing",
        "unit/refinement/test_views.py::test_crowd_em_never_falls_and_weights_are_repetitions",
    ),
    # Tables
    Mutation(
        "moments/products.py",
        "+ 2 * fill_symmetric(own)",
        "+ fill_symmetric(own)",
        "unit/moments/test_products.py::test_distinct_triples_match_the_loop",
    ),
    # Sequences (Proposition 3.4)
    Mutation(
        "models/hmm/symbol_chain.py",
        "(after @ chain.T).T + (ratio.T @ before).T",
        "(after @ chain.T).T",
        "unit/models/test_symbol_pairs.py",
    ),
    Mutation(
        "models/hmm/symbol_chain.py",
        "chain = chain * (emissions @ after)",
        "chain = chain * (emissions @ after).T",
        "unit/models/test_symbol_pairs.py",
    ),
    Mutation(
        "models/hmm/symbol_chain.py",
        "(transitions * weights).T, clipped",
        "transitions * weights, clipped",
        "theorems/test_proposition_3_4.py::test_the_model_comes_back_from_population_moments",
    ),
    Mutation(
        "refinement/emissions_poisson.py",
        "sums / np.where(seen, totals, 1.0)",
        "(sums + 1) / np.where(seen, totals, 1.0)",
        POISSON,
    ),
    Mutation(
        "refinement/emissions_poisson.py",
        "totals = weights.T @ present",
        "totals = weights.T @ np.ones_like(present)",
        POISSON,
    ),
    Mutation(
        "refinement/emissions_poisson.py",
        "rates=np.maximum(rates, self.floor))",
        "rates=np.maximum(rates, 1e-3))",
        NO_COUNTS,
    ),
    Mutation(
        "refinement/emissions_gaussian.py",
        "(squares + self._added) / np.where(seen, totals, 1.0)",
        "squares / np.where(seen, totals, 1.0)",
        STATES,
    ),
    Mutation("refinement/emissions_gaussian.py", "(scatter + np.diag(self._added))", "scatter", STATES),
    Mutation(
        "refinement/emissions_gaussian.py",
        "(scatter.sum(axis=0) + np.diag(self._added))",
        "(scatter.sum(axis=0) + 2 * np.diag(self._added))",
        STATES,
    ),
    Mutation(
        "refinement/emissions_gaussian.py",
        "return self.min_covar * self.scale**2",
        "return 1e-3 * self.min_covar * self.scale**2",
        ONE_VALUE,
    ),
    Mutation("refinement/emissions_gaussian.py", "second - totals * means**2", "second - means**2", STATES),
    Mutation("models/hmm/gaussian.py", "np.full(k, np.mean(scale**2))", "np.tile(scale**2, (k, 1))", STATES),
    Mutation("refinement/simplex.py", "counts = counts + smoothing", "counts = counts + 2 * smoothing", SYMBOLS),
    # The search of chains
    Mutation("models/hmm/landscape.py", "value += xlogy(within, within)", "value += within", MERGERS),
    Mutation("models/hmm/landscape.py", "moves * like.transmat, sums", "moves, sums", SPLITS),
    # Criteria: free parameters of every model
    Mutation(
        "models/multiview/estimator.py", '"multinomial": width - 1}', '"multinomial": width}', f"{CRITERIA}[views]"
    ),
    Mutation(
        "models/single_topic/estimator.py", "(k - 1) + k * (d - 1)", "(k - 1) + k * d", f"{CRITERIA}[single_topic]"
    ),
    Mutation("refinement/emissions.py", "k - 1 + k * (k - 1)", "k * k", f"{CRITERIA}[hmm_of_counts]"),
    Mutation(
        "models/dawid_skene/estimator.py",
        "n_workers * k * (n_labels - 1)",
        "n_workers * k * n_labels",
        f"{CRITERIA}[crowd]",
    ),
    Mutation("refinement/gaussian_mixture.py", "full = d * (d + 1) // 2", "full = d * d", f"{CRITERIA}[tied]"),
    Mutation("refinement/families.py", "(self.sizes - 1).sum()", "self.sizes.sum()", f"{CRITERIA}[table]"),
    Mutation(
        "refinement/emissions_gaussian.py",
        "return int(k * d * (d + 1) // 2)",
        "return int(k * d * d)",
        f"{CRITERIA}[hmm_full]",
    ),
    # Files
    Mutation(
        "files/wav.py",
        "- 128.0) / 127.0",
        "- 127.0) / 127.0",
        "unit/files/test_other_readers.py::test_silence_of_eight_bits_is_zero",
    ),
    Mutation(
        "files/pairs.py",
        "else min(low, 1)",
        "else 1",
        "unit/files/test_counts.py::test_columns_of_svmlight_count_from_zero_or_one",
    ),
    Mutation(
        "files/triplets.py",
        "if n_entries != shape.n_entries:",
        "if n_entries < shape.n_entries:",
        "unit/files/test_counts.py::test_a_faulty_docword_file_is_refused",
    ),
    # Mergers are judged by what the expected likelihood loses
    Mutation(
        "models/product_mixture/landscape.py",
        "np.asarray(entropy + np.einsum",
        "np.asarray(0 * entropy + np.einsum",
        "unit/models/test_product_landscape.py::test_the_cost_is_that_of_the_likelihood_with_known_components",
    ),
    Mutation(
        "refinement/views.py",
        'values = values + np.einsum("ip,ip->i", slopes, features) + constant * totals',
        'values = values + np.einsum("ip,ip->i", slopes, features)',
        "unit/models/test_view_landscape.py::test_a_merger_costs_what_the_expected_likelihood_loses",
    ),
    Mutation(
        "models/dawid_skene/landscape.py",
        "np.asarray(own + totals * np.log",
        "np.asarray(own + 0 * totals * np.log",
        "unit/models/test_crowd_landscape.py::test_a_merger_costs_what_the_expected_likelihood_loses",
    ),
]
