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
POISSON = "unit/refinement/test_emissions_gaussian.py::test_poisson_is_that_of_scipy"
NO_COUNTS = "unit/refinement/test_emissions_gaussian.py::test_rates_of_columns_without_events_are_the_floor"
STATES = "unit/models/test_fixed_points.py::test_gaussian_states_have_the_moments_of_their_steps_and_the_prior"
ONE_POINT = "unit/models/test_fixed_points.py::test_a_component_on_one_point_has_the_least_variance"
CLIMBS = "unit/refinement/test_short_chains.py::test_climbs_match_the_loop_in_python"
SCALES = "unit/sources/test_scale.py::test_scales_within_the_range_only_scale_the_means"
ORACLES_STEP = "unit/refinement/test_gaussian_mixture.py::test_a_step_is_the_oracles"
ONE_VALUE = "unit/models/test_fixed_points.py::test_a_state_on_one_value_has_the_least_variance"
MERGERS = "unit/models/test_chain_landscape.py::test_a_merger_costs_what_the_expected_likelihood_loses"
SPLITS = "unit/models/test_chain_landscape.py::test_splitting_keeps_totals"
VIEWS = "unit/models/test_fixed_points.py::test_views_have_the_moments_of_their_samples"
NORMAL = "unit/families/test_gaussian.py"
PAIRS = "unit/fitting/test_candidates.py::test_mergers_count_the_weights_of_components_whatever_is_judged_at_a_time"
COUNTS = "unit/families/test_counts.py"
CRITERIA = "unit/models/test_criteria.py::test_free_parameters"
DIRICHLET = "unit/moments/test_dirichlet.py"
REDUCTION = "theorems/test_whitening_reduction.py"
AFFINE = "unit/reduction/test_affine_reduction.py"
FOURTH = "unit/reduction/test_fourth_reduction.py"
SPHERES = "theorems/test_theorems_3_2_and_3_3.py"
WORDS = "unit/moments/test_words.py"
VECTORS = "unit/moments/test_vectors.py"
CUMULANTS = "unit/moments/test_cumulants.py"
NOISE = "unit/test_noise.py"
SCORES = "unit/uncertainty/test_scores.py"
DRAWS = "unit/refinement/test_lda_likelihood.py"
WEIGHTED = "unit/uncertainty/test_weighted.py"
INTERVALS = "unit/uncertainty/test_intervals.py"
EVIDENCE = "unit/fitting/test_choice.py::test_of_one_component_the_marginal_likelihood_is_exact"
COLUMNS = "unit/moments/test_columns.py"
STEPS = "unit/moments/test_sequence_features.py::test_sums_are_those_of_a_loop"
NARROWED = "unit/fitting/test_choice.py::test_moments_of_more_hold_those_of_fewer"
FILLED = "unit/fitting/test_choice.py::test_moments_that_are_filled_in_hold_nearly_those_of_fewer"
PLACES = "unit/uncertainty/test_places.py"

MUTATIONS = [
    # Documents: their weights, tuples of their words, Theorem 3.5
    Mutation("sources/documents.py", "(batch.lengths + half_length)) ** 2", "(batch.lengths + half_length))", TOPICS),
    Mutation("models/topics/policy.py", "half_length: float = 100.0", "half_length: float = 50.0", TOPICS),
    Mutation(
        "models/topics/moments.py", "weigh = weigh_by_length(half_length)", "weigh = weigh_by_length(0.0)", TOPICS
    ),
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
    Mutation("models/topics/theorem.py", "POLICY.identified * np.median(values)", "np.inf", TOPICS),
    Mutation("models/topics/theorem.py", "POLICY.identified * np.median(values)", "0.0", TOPICS),
    Mutation("completion.py", "np.exp(-total / n_words)", "np.exp(-total / (2 * n_words))", "unit/test_completion.py"),
    # Whitening and recovery (section 4.3), and what noise shows
    Mutation("whitening/whitener.py", "np.sqrt(eigenvalues[:n_components])", "eigenvalues[:n_components]", REDUCTION),
    Mutation("whitening/whitener.py", "lift = top * roots /", "lift = top / roots /", REDUCTION),
    Mutation("reduction/plain.py", "weights = (ratio / values) ** 2", "weights = ratio / values", REDUCTION),
    Mutation("reduction/affine.py", "return last**2,", "return last,", AFFINE),
    Mutation("reduction/affine.py", "tensor[r, r, r] = 1.0", "tensor[r, r, r] = 0.0", AFFINE),
    Mutation("reduction/fourth.py", "values * lengths**4", "values * lengths**2", FOURTH),
    Mutation("reduction/fourth.py", "third = tensor.array @ second", "third = tensor.array @ first", FOURTH),
    Mutation("moments/views.py", "(mean + shift for mean", "(mean for mean", "unit/reduction/test_view_reduction.py"),
    Mutation("whitening/noise.py", "signs * scaled / 2", "signs * scaled", NOISE),
    Mutation("whitening/noise.py", "np.sqrt(usable.size / max(n_documents, 1))", "1.0", NOISE),
    Mutation(
        "models/gaussian_mixture/moments.py", "return self.noise_variance *", "return 2 * self.noise_variance *", NOISE
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
    Mutation("models/gaussian_mixture/moments.py", "(whitened - noise -", "(whitened -", SPHERES),
    Mutation("models/gaussian_mixture/moments.py", "(moments.radial - inside)", "moments.radial", SPHERES),
    Mutation("models/gaussian_mixture/moments.py", "/ (self.dimension - r))", "/ self.dimension)", SPHERES),
    Mutation(
        "models/gaussian_mixture/choice.py",
        "(widest < edges)",
        "(widest < 9 * edges)",
        "unit/models/test_gaussian_mixture.py::test_spheres_that_cover_two_components_or_a_few_rows_are_not_round",
    ),
    Mutation("moments/vectors.py", "- 2 / 3 * np.outer(c, c)", "- np.outer(c, c)", VECTORS),
    Mutation(
        "families/averages.py",
        "np.where(seen, sums / np.where(seen, totals, 1.0), otherwise)",
        "sums / np.where(seen, totals, 1.0)",
        "unit/refinement/test_gaussian_mixture.py::test_a_component_without_rows_keeps_its_place",
    ),
    Mutation("families/gaussian.py", "floor if self.order else np.min(floor)", "0.0", ONE_POINT),
    Mutation("families/gaussian.py", "np.maximum(1.0, _LEAST_RATIO", "np.maximum(2.0, _LEAST_RATIO", ONE_POINT),
    Mutation("families/gaussian.py", "matrices - np.eye(matrices.shape[-1])", "matrices", NORMAL),
    Mutation("refinement/gaussian_mixture.py", "value=sums.value + _total", "value=sums.value - _total", ORACLES_STEP),
    Mutation("families/gaussian.py", "totals.reshape(len(means), -1) * means * means", "means * means", STATES),
    Mutation("families/gaussian.py", "np.log(variances) + means * linear", "np.log(variances)", NORMAL),
    Mutation("families/gaussian.py", "else d * logs", "else logs", NORMAL),
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
        "reduction/symmetrized.py",
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
    Mutation("moments/crowd.py", "np.maximum(totals[:, g, None], 1)", "1", "unit/moments/test_crowd.py"),
    Mutation(
        "refinement/views.py",
        "totals + more * (totals > LEAST_WEIGHT), otherwise",
        "totals + more, otherwise",
        "unit/refinement/test_views.py::test_a_component_without_samples_keeps_its_place",
    ),
    Mutation(
        "fitting/candidates.py",
        "weights < _DEAD / weights.size",
        "weights < 0",
        "unit/models/test_product_mixture.py::TestDiagnostics"
        "::test_a_component_that_dies_needs_a_search_however_little_em_gains",
    ),
    Mutation(
        "fitting/candidates.py",
        "_NEAR * n_parameters / n_samples",
        "_NEAR * n_parameters",
        "unit/models/test_multiview.py::test_moments_far_from_a_maximum_have_rivals",
    ),
    Mutation("refinement/views.py", "scatter_about(mean - center, totals", "scatter_about(mean, totals", VIEWS),
    Mutation(
        "sources/crowd.py",
        "block.astype(np.intp)] + firsts",
        "block.astype(np.intp)] + 0 * firsts",
        "unit/models/test_dawid_skene.py::test_numbers_are_read_as_their_names_are",
    ),
    Mutation(
        "refinement/dawid_skene.py",
        "CrowdParameters(proportions(totals, smoothing)",
        "CrowdParameters(proportions(totals, 100 * smoothing)",
        "unit/refinement/test_views.py::test_crowd_em_never_falls_and_weights_are_repetitions",
    ),
    Mutation("families/counts.py", "np.log(means) - against, against", "np.log(means), against", COUNTS),
    Mutation("families/counts.py", "return strength, 2 * strength", "return strength, strength", COUNTS),
    Mutation("families/counts.py", "strength / np.maximum(means, floor)", "strength", COUNTS),
    Mutation("families/counts.py", "return np.log(means), -means", "return np.log(means), 0 * means", COUNTS),
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
        "averages(sums, totals, self.rates)",
        "averages(sums + 1, totals, self.rates)",
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
        "self.rates), self.floor))",
        "self.rates), 1e-3))",
        NO_COUNTS,
    ),
    Mutation("families/gaussian.py", "if added is not None:", "if False:", STATES),
    Mutation("families/gaussian.py", "added.sum() if self.order == 0", "added.mean() if self.order == 0", STATES),
    Mutation(
        "refinement/emissions_gaussian.py",
        "return self.min_covar * self.scale**2",
        "return 1e-3 * self.min_covar * self.scale**2",
        ONE_VALUE,
    ),
    Mutation("models/hmm/gaussian.py", "np.full(k, np.mean(scale**2))", "np.tile(scale**2, (k, 1))", SCALES),
    Mutation("families/simplex.py", "counts = counts + smoothing", "counts = counts + 2 * smoothing", CLIMBS),
    # The search of chains
    Mutation("models/hmm/landscape.py", "value += xlogy(within, within)", "value += within", MERGERS),
    Mutation("models/hmm/landscape.py", "moves * like.transmat, sums", "moves, sums", SPLITS),
    # Criteria: free parameters of every model
    Mutation("families/counts.py", "return width - 1", "return width", f"{CRITERIA}[views]"),
    Mutation(
        "refinement/multinomial_mixture.py",
        "k - 1 + k * CATEGORICAL",
        "k + k * CATEGORICAL",
        f"{CRITERIA}[single_topic]",
    ),
    Mutation("refinement/emissions.py", "k - 1 + k * (k - 1)", "k * k", f"{CRITERIA}[hmm_of_counts]"),
    Mutation(
        "refinement/dawid_skene.py",
        "n_workers * k * CATEGORICAL.n_free(n_labels)",
        "n_workers * k * n_labels",
        f"{CRITERIA}[crowd]",
    ),
    Mutation("families/gaussian.py", "d * (d + 1) // 2)[self.order]", "d * d)[self.order]", f"{CRITERIA}[hmm_full]"),
    Mutation("families/gaussian.py", "each if self.shared else k * each", "k * each", f"{CRITERIA}[tied]"),
    Mutation(
        "families/tables.py",
        "CATEGORICAL.n_free(size) for size in self.sizes",
        "size for size in self.sizes",
        f"{CRITERIA}[table]",
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
        "statistics) + constants * totals)",
        "statistics))",
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
        "counts, np.log(proportions(counts, self.smoothing))",
        "counts, np.log(proportions(counts, 100 + self.smoothing))",
        "unit/models/test_crowd_landscape.py::test_a_merger_costs_what_the_expected_likelihood_loses",
    ),
    Mutation("fitting/landscape.py", "expected(some) + some[0] * np.log", "expected(some) + 0 * np.log", PAIRS),
    # Intervals: information of a mixture, scores of a chain, bounds, weighted sums
    Mutation("uncertainty/mixture_scores.py", "- self.complete + self.outer", "- self.complete", SCORES),
    Mutation("uncertainty/mixture_scores.py", "+= (both - once[a]", "+= (both - 0 * once[a]", SCORES),
    Mutation("uncertainty/mixture_scores.py", "== j) - about.weights", "== j) - 0 * about.weights", SCORES),
    Mutation("uncertainty/mixture_scores.py", "each, counts * shares[:, j]", "each, shares[:, j]", SCORES),
    Mutation("models/hmm/base.py", "expected[data.offsets[:-1]] = parameters.startprob", "pass", SCORES),
    Mutation("uncertainty/blocks.py", "self.counts[place] += len(chunk)", "pass", PLACES),
    Mutation("uncertainty/compute.py", "factor *= np.sqrt(units.share)", "factor *= units.share", PLACES),
    Mutation("uncertainty/replication.py", '"cityblock") / np', '"cityblock") / 2 / np', INTERVALS),
    Mutation("uncertainty/replication.py", "(own * matched > 0)", "1", INTERVALS),
    Mutation("refinement/lda_likelihood.py", "shares - at.topics * shares.sum", "shares - 0 * shares.sum", DRAWS),
    Mutation("refinement/lda_likelihood.py", "first.T @ second", "first.T @ first", DRAWS),
    Mutation("uncertainty/weighted.py", "[..., 0] * scale", "[..., 0]", WEIGHTED),
    Mutation("uncertainty/bounds.py", "1 - tail ** (1 / trials)", "1 - tail ** (2 / trials)", INTERVALS),
    Mutation("uncertainty/replicates.py", "{name: value * times for", "{name: value + 0 * times for", INTERVALS),
    Mutation("uncertainty/scales.py", "1 / (shares * (1 - shares))", "1 / shares", INTERVALS),
    # The choice of a number of components: the price of probabilities, moments of fewer from those of more
    Mutation("families/simplex.py", "gammaln(totals + d * pseudo_count)", "gammaln(totals + pseudo_count)", EVIDENCE),
    Mutation("models/single_topic/estimator.py", "words = trials * (members", "words = (members", EVIDENCE),
    Mutation("fitting/choice/judging.py", "self.size.sum() * self.taken", "self.taken.size * self.taken", EVIDENCE),
    Mutation("moments/sequence_features.py", "np.r_[:size, k : k + size]", "np.r_[:size, :size]", NARROWED),
    # Steps: means over what is there, pairs and triples that reach into the next run
    Mutation("moments/columns.py", "mean = total / count", "mean = total / len(values)", COLUMNS),
    Mutation("moments/sequence_features.py", "slice(run.start, run.stop + 1)", "slice(run.start, run.stop)", STEPS),
    Mutation("moments/sequence_features.py", "min(run.stop + 2, n_steps)", "min(run.stop + 1, n_steps)", STEPS),
    Mutation("models/product_mixture/moments.py", "inner / lengths)", "inner)", FILLED),
]
