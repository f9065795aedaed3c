// Densities and weighted sums of Gaussian observations with diagonal covariances: one pass over a slice each.
//
// The columns of `BLOCK` steps are laid side by side: loops over a constant number of them fill the vector units.
#include "exponential.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr int BLOCK = 64;

// `BLOCK` steps about the centre, a column in each row, 0 where missing or after the end; whether something is missing.
struct Block {
    Index d;
    Scratch<double> values, absent;
    explicit Block(Index d_) : d(d_), values(d * BLOCK), absent(d * BLOCK) {}

    bool read(Rows<const double> rows, const double* center, Index begin) {
        const Index there = smaller<Index>(BLOCK, rows.n - begin);
        double sum = 0;
        for (Index c = 0; c < d; ++c) {
            const double *from = rows[begin] + c, middle = center[c];
            double* column = values + c * BLOCK;
            for (Index s = 0; s < there; ++s) column[s] = from[s * d] - middle;
            for (Index s = there; s < BLOCK; ++s) column[s] = 0;
            Vec<double> parts{};
            for (Index s = 0; s < BLOCK; s += WIDTH<double>) parts += load(column + s);
            sum += total<double>(parts);
        }
        if (sum - sum == 0) return false;  // neither NaN nor an overflow
        for (Index i = 0; i < d * BLOCK; ++i) {
            const bool missing = values[i] != values[i];
            absent[i] = missing ? 1.0 : 0.0;
            values[i] = missing ? 0.0 : values[i];
        }
        return true;
    }
};

void diagonal_rows(Rows<const double> values, const double* center, Rows<const double> linear, const double* half,
                   const double* constants, double least, Rows<double> rows, double* scales) {
    const Index d = values.width, k = rows.width;
    Block block(d);
    Scratch<double> sums(k * BLOCK), totals(k);
    for (Index c = 0; c < d; ++c)
        for (Index j = 0; j < k; ++j) totals[j] += constants[c * k + j];
    for (Index begin = 0; begin < rows.n; begin += BLOCK) {
        const bool missing = block.read(values, center, begin);
        double top[BLOCK];
        for (double& value : top) value = -__builtin_inf();
        for (Index j = 0; j < k; ++j) {
            double* sum = sums + j * BLOCK;
            for (int s = 0; s < BLOCK; ++s) sum[s] = totals[j];
            for (Index c = 0; c < d; ++c) {
                const double slope = linear[c][j], bend = half[c * k + j], *v = block.values + c * BLOCK;
                for (int s = 0; s < BLOCK; ++s) sum[s] += v[s] * (slope - v[s] * bend);
                if (missing)
                    for (int s = 0; s < BLOCK; ++s) sum[s] -= block.absent[c * BLOCK + s] * constants[c * k + j];
            }
            for (int s = 0; s < BLOCK; ++s) top[s] = larger(top[s], sum[s]);
        }
        for (Index j = 0; j < k; ++j)
            for (int s = 0; s < BLOCK; s += WIDTH<double>) {
                const Vec<double> log = load(sums + j * BLOCK + s) - load(top + s);
                store(sums + j * BLOCK + s, exponential<double>(log < least ? repeat(least) : log));
            }
        for (Index s = 0; s < smaller<Index>(BLOCK, rows.n - begin); ++s) {
            scales[begin + s] = top[s];
            for (Index j = 0; j < k; ++j) rows[begin + s][j] = sums[j * BLOCK + s];
        }
    }
}

void diagonal_sums(Rows<const double> values, const double* center, Rows<const double> weights, double* totals,
                   double* first, double* second) {
    const Index d = values.width, k = weights.width;
    Block block(d);
    Scratch<double> w(k * BLOCK), mass(k);
    for (Index begin = 0; begin < weights.n; begin += BLOCK) {
        const bool missing = block.read(values, center, begin);
        const Index there = smaller<Index>(BLOCK, weights.n - begin);
        for (Index j = 0; j < k; ++j) {
            double* mine = w + j * BLOCK;
            for (Index s = 0; s < BLOCK; ++s) mine[s] = s < there ? weights[begin + s][j] : 0.0;
            Vec<double> all{};
            for (int s = 0; s < BLOCK; s += WIDTH<double>) all += load(mine + s);
            mass[j] += total<double>(all);
            for (Index c = 0; c < d; ++c) {
                Vec<double> one{}, two{}, gone{};
                for (int s = 0; s < BLOCK; s += WIDTH<double>) {
                    const Vec<double> v = load(block.values + c * BLOCK + s), scaled = load(mine + s) * v;
                    one += scaled;
                    two += scaled * v;
                    if (missing) gone += load(mine + s) * load(block.absent + c * BLOCK + s);
                }
                first[j * d + c] += total<double>(one);
                second[j * d + c] += total<double>(two);
                if (missing) totals[j * d + c] -= total<double>(gone);
            }
        }
    }
    for (Index j = 0; j < k; ++j)
        for (Index c = 0; c < d; ++c) totals[j * d + c] += mass[j];
}

}  // namespace

const GaussianKernels gaussian{diagonal_rows, diagonal_sums};

}  // namespace odeco::ODECO_ISA
