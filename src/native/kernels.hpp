// Every kernel that is compiled for several instruction sets: one table of functions for each family.
//
// What the functions compute, and the shapes of their arrays, is said once: in odeco/kernels/_native.pyi.
// Nothing is checked here any more (`arguments.hpp` does it). Each kernel file defines its tables in the namespace of the
// instruction set that it is compiled for, and `dispatch.cpp` chooses one of them when the module is loaded.
#pragma once

#include "views.hpp"

namespace odeco {

// What the E step of several mixtures adds to: of each component, and of each mixture.
struct PosteriorSets {
    double *totals, *likelihoods;
    Rows<double> sums;
};

template <class Real> struct SparseKernels {
    void (*project_rows)(Csr<Real>, Rows<const Real> block, Range, Rows<Real> out);
    void (*scatter_rows)(Csr<Real>, const Real* weights, Rows<const Real> rows, Range, Rows<Real> out);
    void (*gram_rows)(Csr<Real>, const Real* weights, Rows<const Real> block, Range, Rows<Real> out);
    double (*posterior_rows)(Csr<Real>, const double* weights, Rows<const double> logs, const double* log_weights, Range,
                             double* totals, Rows<double> out);
    void (*posterior_sets)(Csr<Real>, const double* weights, Rows<const double> logs, Rows<const double> log_weights, Range,
                           const PosteriorSets& out);
    void (*weighted_column_sums)(Csr<Real>, const double* weights, double* out);
};

template <class Real> struct DocumentKernels {
    void (*infer_rows)(Csr<Real>, Rows<const Real> topics, const Real* alpha, Range, Index n_iter, double tol,
                       Rows<Real> strengths);
    void (*infer_steps)(Csr<Real>, Rows<const Real> topics, const Real* alpha, Range, Index n_iter, Rows<Real> strengths);
    double (*em_rows)(Csr<Real>, Rows<const Real> topics, const Real* alpha, Range, Index n_iter, bool variational,
                      const Real* row_weights, Rows<Real> strengths, Rows<Real> word_counts);
    double (*smoothed_log_likelihood)(Csr<Real>, Rows<const Real> word_counts, Rows<const Real> mixing, double eta);
    void (*gibbs_rows)(Csr<Real>, Rows<const Real> topics, const Real* alpha, const double* uniforms,
                       std::int64_t* assignments, Rows<Real> strengths);
    void (*mix_rows)(Rows<const Real> fresh, const Real* old, Real share, Real* out, double* totals);
    void (*smooth_rows)(Rows<const Real> word_counts, Real eta, const Real* inverse, Real* out);
};

// What CVB0 reads and writes besides the counts.
template <class Real> struct Cvb0Arrays {
    Rows<const Real> topics;
    const Real *own_word, *alpha, *row_weights;
    Rows<Real> strengths, spreads, word_counts;
};

template <class Real> struct Cvb0Kernels {
    void (*cvb0_rows)(Csr<Real>, const Cvb0Arrays<Real>&, Range, Index n_em, Index n_iter, bool echo);
};

inline constexpr double CVB0_FLOOR = 0.1;
inline constexpr double CVB0_LEAST_REST = 0.2;

// Words of float32 documents scored in double precision.
struct ScoringKernels {
    void (*log_likelihood_rows)(Csr<float>, Rows<const double> topics, Rows<const double> proportions, Range, double* out);
};

inline constexpr int LANES = 8;  // stretches of a sequence that advance together
inline constexpr int PAD = 2;    // numbers of states are padded to multiples of it

// Steps of sequences: likelihoods of the distinct observations, and which of them each step has.
struct Steps {
    Rows<const double> rows;
    Span<const std::int32_t> index;
    const std::uint8_t* first;
    Span<const double> weights;  // empty: 1 for each step
};

// `LANES` stretches of `length` steps, the first of which begins at `begin`; `burn` steps are run before or after them.
struct Stretches {
    Index begin, length, burn;
};

struct ForwardSums {
    double* message;         // (kp, LANES)
    Rows<double> alphas;     // (length + 1, kp LANES), or one row
    double* norms;           // (length, LANES)
    double* log_likelihoods; // (LANES,)
};

struct BackwardSums {
    double* message;            // (kp, LANES)
    const double *alphas, *norms;
    const std::int32_t* target; // (steps,)
    Rows<double> row_sums;      // (m, k)
    double* start_sums;         // (k,)
    double* pair_sums;          // (kp, kp, LANES)
    double* used;               // (kp, LANES)
};

struct ChainKernels {
    void (*forward)(const Steps&, Span<const double> scales, Rows<const double> transposed, const double* start, Stretches,
                    const ForwardSums&);
    void (*backward)(const Steps&, Rows<const double> transmat, Stretches, const BackwardSums&);
    void (*advance)(const Steps&, Rows<const double> transmat, const double* start, double* message);
    void (*retreat)(const Steps&, Rows<const double> transmat, double* message);
};

// What the M step needs, added up: by distinct observation (m, k), of first steps (k,), and transitions (k, k).
struct ChainSums {
    Rows<double> row_sums;
    double *start_sums, *transitions;
};

// Pseudo-counts of first states and of transitions.
struct Smoothing {
    double start, transitions;
};

// A climb ends after so many gains in a row below `tol`.
struct Rule {
    double tol;
    Index patience;
};

struct ShortClimb {
    Index k;
    Smoothing smoothing;
    double total;  // what log-likelihoods are divided by
    Rule rule;
};

// Of `Steps` without likelihoods the climbs make their own.
struct ShortChainKernels {
    double (*expect_short)(const Steps&, Span<const double> scales, Rows<const double> transmat, const double* start,
                           const ChainSums&);
    Index (*climb_symbols)(const Steps&, const ShortClimb&, Index n_symbols, double smoothing, double* state,
                           Span<double> seen);
    Index (*climb_counts)(const Steps&, const ShortClimb&, Rows<const double> values, const double* base, double floor,
                          double* state, Span<double> seen);
};

// The end of a path, and its log probability.
struct Traced {
    Index state;
    double value;
};

struct ViterbiKernels {
    double (*best_paths8)(const Steps&, Rows<const double> log_transmat, const double* log_start, double* scores,
                          Rows<std::uint8_t> origins);
    double (*best_paths32)(const Steps&, Rows<const double> log_transmat, const double* log_start, double* scores,
                           Rows<std::int32_t> origins);
    void (*best_scores)(const Steps&, Rows<const double> log_transposed, const double* log_start, Stretches,
                        double* scores, Rows<double> kept);
    Traced (*trace_lanes)(const Steps&, Rows<const double> log_transposed, const double* log_start, Stretches,
                          Rows<const double> kept, Index state, Span<std::int64_t> path);
};

struct GaussianKernels {
    void (*diagonal_rows)(Rows<const double> values, const double* center, Rows<const double> linear,
                          const double* half, const double* constants, double least, Rows<double> rows, double* scales);
    void (*diagonal_sums)(Rows<const double> values, const double* center, Rows<const double> weights, double* totals,
                          double* first, double* second);
    void (*full_rows)(Rows<const double> values, const double* center, const double* triangles, Rows<const double> shifts,
                      const double* constants, double least, Rows<double> rows, double* scales);
    void (*full_sums)(Rows<const double> values, const double* center, Rows<const double> weights, double* totals,
                      double* first, double* second);
};

// Functions of one observation: `odeco.moments.sequence_features` says which.
struct FeatureMap {
    const double* center;               // (d,)
    Rows<const double> axes, knots;     // (d, d), (q, d)
    Rows<const std::int64_t> products;  // (m, 2)
};

// Observations in order, NaN where one is missing; after the first `n_own` of them come neighbours that others count.
struct LinkedSteps {
    Rows<const double> values;
    const std::uint8_t* first;
    Span<const double> weights;  // empty: 1 for each step
    Index n_own;
};

struct StepPairs {
    double *total, *weights;      // (f,), (2,)
    Rows<double> square, lagged;  // (f, f)
};

struct StepTriples {
    Rows<const double> z;  // (k, steps)
    const double* center;  // (d,)
    double *pairs, *triples, *first, *weights;       // (k, k), (k, k, k), (k,), (3,)
    double *seen, *values, *seen_products, *products;  // (2k, d), the last two (2k, d, d) where crossed
    bool crossed;
};

struct FeatureKernels {
    void (*project_steps)(Rows<const double> values, const FeatureMap&, Rows<const double> coefficients,
                          const double* offsets, Rows<double> out);
    void (*add_step_pairs)(const LinkedSteps&, const FeatureMap&, const StepPairs&);
    void (*add_step_triples)(const LinkedSteps&, const StepTriples&);
};

template <class Real> struct MixtureKernels {
    void (*normalize)(Rows<Real> joint, Real* highest, Real* totals);
};

// Mixtures whose log densities are linear in features of a sample; several of them with as many components each.
template <class Real> struct LinearMixtures {
    Rows<const Real> coefficients;  // (K, p)
    const Real* offsets;            // (K,)
    Index n_mixtures;
};

template <class Real> struct PosteriorSums {
    double *sums, *totals;   // (K, p), (K,)
    Real *highest, *norms;   // (n_mixtures, samples)
};

template <class Real> struct PosteriorKernels {
    void (*posterior_sums)(Rows<const Real> features, Range, Span<const double> weights, const LinearMixtures<Real>&,
                           const PosteriorSums<Real>&);
};

// Normal distributions of the first d features: log densities constants[j] - |triangles[j] y + shifts[j]|^2 / 2.
template <class Real> struct QuadraticMixture {
    const Real* triangles;    // (k, d, d), lower ones
    Rows<const Real> shifts;  // (k, d)
    const Real* constants;    // (k,)
};

template <class Real> struct QuadraticKernels {
    void (*quadratic_densities)(Rows<const Real> features, const QuadraticMixture<Real>&, Rows<Real> out);
    void (*quadratic_sums)(Rows<const Real> features, Span<const double> weights, const QuadraticMixture<Real>&,
                           const PosteriorSums<Real>&, double* second);
};

// Columns of samples, about an origin where there is one; their squares are features after them, where that is said.
template <class From> struct RowBlock {
    Rows<const From> rows;
    Index d;
    const double* origin;
    bool squares;
};

// The same for features that are made of rows while these are in cache.
template <class From> struct RowPosteriorKernels {
    void (*posterior_sums_of_rows)(Span<const RowBlock<From>> blocks, Range, Span<const double> weights,
                           const LinearMixtures<double>&, const PosteriorSums<double>&);
};

// Views in three groups, with directions (d_t, r of its group) of each view, one after the other.
template <class From> struct ViewSamples {
    Span<const RowBlock<From>> blocks;
    const std::int32_t* groups;  // of each view
    const double* directions;
    Index ranks[3];
    Span<const double> weights;  // (n,), or empty
};

struct ViewSums {
    double *first, *projected;  // of columns, and of coordinates of the groups, one after the other
    double* cross;              // (d_t, r_g) for each view and the two groups that it is not in
    double *pairs, *triples;    // of two groups and of all three, or none
};

template <class From> struct ViewKernels {
    void (*add_views)(const ViewSamples<From>&, Range, const ViewSums&);
};

// Columns of a table by family: values of Bernoulli columns, indicators, counts, numbers, squares, masks.
struct TableColumns {
    Index n_bernoulli, n_poisson, n_gaussian;
    Span<const std::int64_t> blocks;   // ends of the indicators of each categorical column, from 0 on
    Span<const std::int32_t> mask_of;  // of each Bernoulli column, count and number: which mask it has, or -1
};

struct TableData {
    Rows<const double> features;  // (P, n)
    Span<const double> weights;   // (n,), or empty
    const double* overall;        // (P,)
    double total, prior;
};

struct TableRule {
    Index max_iter;
    double tol;
    bool accelerate;
};

struct TableClimbed {
    Index n_records;
    bool converged;
};

struct TableKernels {
    TableClimbed (*climb_tables)(const TableData&, const TableColumns&, Index n_mixtures, Index k, const TableRule&,
                                 double* state, double* values, double* likelihoods, Span<double> seen,
                                 std::int64_t* counts);
};

// A grid of `n_cells` cells from `low`, `step` apart.
struct Grid {
    double low, step;
    Index n_cells;
};

// Samples in columns, a matrix whose products with them are the outputs, and the half that each sample is in.
template <class Real> struct ScoredSamples {
    Rows<const Real> rows, turn;    // (r, n), (k, r)
    Span<const double> weights;     // (n,), or empty
    const std::int8_t* halves;      // (n,)
};

template <class Real> struct ScoreKernels {
    void (*add_counts)(const ScoredSamples<Real>&, Range, Grid, double* counts);
    void (*add_score_products)(const ScoredSamples<Real>&, Range, Grid, const float* tables, Rows<double> out);
};

template <class From, class Real> struct ColumnKernels {
    void (*centred_columns)(Rows<const From> rows, Index d, Range, const From* origin, Rows<Real> out);
};

// Three blocks of the same samples, of which so many columns count; two that are neighbours may be the same one.
template <class Real> struct CubeSamples {
    Rows<const Real> first, second, third;
    Index k[3];
    Span<const double> weights;  // (n,), or empty
};

template <class Real> struct CubeKernels {
    void (*add_cubes)(const CubeSamples<Real>&, double* sums);
};

// `out` holds sums of products of a one and the d centred numbers of each row. Coordinates are columns from `start` on.
template <class Real> struct ChannelKernels {
    void (*add_row_products)(Rows<const Real> rows, const double* origin, Span<const double> weights, Rows<double> out);
    void (*whiten_rows)(Rows<const Real> rows, const Real* origin, Rows<const float> turn, Index start, Rows<float> out);
    void (*whiten_rows_double)(Rows<const Real> rows, const Real* origin, Rows<const double> turn, Index start,
                                Rows<double> out);
};

template <class Real> struct CumulantKernels {
    void (*add_second)(Rows<const Real> rows, Range, Span<const double> weights, Rows<double> second);
    void (*add_fourth)(Rows<const Real> rows, Range, Span<const double> weights, double* second, double* fourth);
};

struct SplineKernels {
    void (*smoothing_splines)(Rows<const double> masses, const double* right, Span<const double> penalties, double* out);
};

struct SequenceKernels {
    void (*add_triples)(Span<const std::int32_t> before, const std::int32_t* middle, const std::int32_t* after,
                        Span<const double> weights, Rows<const double> basis, double* core);
    void (*products_at)(Span<const std::int32_t> rows, const std::int32_t* columns, Rows<const double> left,
                        Rows<const double> right, double* out);
    void (*walk)(Rows<const double> levels, const double* uniforms, Index state, Span<std::int64_t> out);
    double (*jacobi_sweep)(double* stack, double* frame, Index n, Index m);
};

// A symmetric tensor of order 3 or 4 with `size` entries.
struct SmallTensor {
    const double* data;
    Index n, order, size;
};

struct FrameRule {
    Index n_iter;
    double tol, shift;
};

// No iterations where a matrix was close to singular.
struct FrameEnd {
    Index n_iter;
    double change;
};

struct FrameKernels {
    FrameEnd (*iterate_frame)(const SmallTensor&, Index r, const FrameRule&, double* frame, double* values, double* mapped);
};

#define ODECO_TABLES(ISA)                                                                                                \
    namespace ISA {                                                                                                      \
    extern const SparseKernels<float> sparse32;                                                                          \
    extern const SparseKernels<double> sparse64;                                                                         \
    extern const DocumentKernels<float> documents32;                                                                     \
    extern const DocumentKernels<double> documents64;                                                                    \
    extern const Cvb0Kernels<float> cvb32;                                                                               \
    extern const Cvb0Kernels<double> cvb64;                                                                              \
    extern const ScoringKernels scoring;                                                                                 \
    extern const ChainKernels chains;                                                                                    \
    extern const ShortChainKernels short_chains;                                                                         \
    extern const ViterbiKernels viterbi;                                                                                 \
    extern const GaussianKernels gaussian;                                                                               \
    extern const FeatureKernels step_features;                                                                           \
    extern const MixtureKernels<float> mixture32;                                                                        \
    extern const MixtureKernels<double> mixture64;                                                                       \
    extern const PosteriorKernels<float> posteriors32;                                                                   \
    extern const PosteriorKernels<double> posteriors64;                                                                  \
    extern const RowPosteriorKernels<float> row_posteriors32;                                                            \
    extern const RowPosteriorKernels<double> row_posteriors64;                                                           \
    extern const QuadraticKernels<float> quadratic32;                                                                    \
    extern const QuadraticKernels<double> quadratic64;                                                                   \
    extern const ViewKernels<float> views32;                                                                             \
    extern const ViewKernels<double> views64;                                                                            \
    extern const TableKernels tables;                                                                                    \
    extern const ScoreKernels<float> scores32;                                                                           \
    extern const ScoreKernels<double> scores64;                                                                          \
    extern const ColumnKernels<float, float> columns32;                                                                  \
    extern const ColumnKernels<double, float> columns64to32;                                                             \
    extern const ColumnKernels<double, double> columns64;                                                                \
    extern const CubeKernels<float> cubes32;                                                                             \
    extern const CubeKernels<double> cubes64;                                                                            \
    extern const ChannelKernels<float> channels32;                                                                       \
    extern const ChannelKernels<double> channels64;                                                                      \
    extern const CumulantKernels<float> cumulants32;                                                                     \
    extern const CumulantKernels<double> cumulants64;                                                                    \
    extern const SplineKernels splines;                                                                                  \
    extern const FrameKernels frames;                                                                                    \
    extern const SequenceKernels sequences;                                                                              \
    }

#ifdef ODECO_ISA
ODECO_TABLES(ODECO_ISA)
#endif

}  // namespace odeco
