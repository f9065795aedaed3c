// Densities and weighted sums of Gaussian observations with diagonal or full covariances: one pass over a slice each.
//
// The columns of `BLOCK` steps are laid side by side: loops over a constant number of them fill the vector units.
#include "exponential.hpp"
#include "inner.hpp"
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

// Log densities of `BLOCK` steps, a state in each row, and the largest of each step.
struct Logs {
    Index k;
    Scratch<double> sums;
    double top[BLOCK];
    explicit Logs(Index k_) : k(k_), sums(k * BLOCK) {}

    ODECO_INLINE double* operator[](Index j) const { return sums + j * BLOCK; }

    // Densities in units of the largest, but not below the exponential of `least`, of the steps from `begin` on.
    void write(Index begin, double least, Rows<double> rows, double* scales) {
        for (double& value : top) value = -__builtin_inf();
        for (Index j = 0; j < k; ++j)
            for (int s = 0; s < BLOCK; ++s) top[s] = larger(top[s], (*this)[j][s]);
        for (Index j = 0; j < k; ++j)
            for (int s = 0; s < BLOCK; s += WIDTH<double>) {
                const Vec<double> log = load((*this)[j] + s) - load(top + s);
                store((*this)[j] + s, exponential<double>(log < least ? repeat(least) : log));
            }
        for (Index s = 0; s < smaller<Index>(BLOCK, rows.n - begin); ++s) {
            scales[begin + s] = top[s];
            for (Index j = 0; j < k; ++j) rows[begin + s][j] = (*this)[j][s];
        }
    }
};

void diagonal_rows(Rows<const double> values, const double* center, Rows<const double> linear, const double* half,
                   const double* constants, double least, Rows<double> rows, double* scales) {
    const Index d = values.width, k = rows.width;
    Block block(d);
    Logs logs(k);
    Scratch<double> totals(k);
    for (Index c = 0; c < d; ++c)
        for (Index j = 0; j < k; ++j) totals[j] += constants[c * k + j];
    for (Index begin = 0; begin < rows.n; begin += BLOCK) {
        const bool missing = block.read(values, center, begin);
        for (Index j = 0; j < k; ++j) {
            double* sum = logs[j];
            for (int s = 0; s < BLOCK; ++s) sum[s] = totals[j];
            for (Index c = 0; c < d; ++c) {
                const double slope = linear[c][j], bend = half[c * k + j], *v = block.values + c * BLOCK;
                for (int s = 0; s < BLOCK; ++s) sum[s] += v[s] * (slope - v[s] * bend);
                if (missing)
                    for (int s = 0; s < BLOCK; ++s) sum[s] -= block.absent[c * BLOCK + s] * constants[c * k + j];
            }
        }
        logs.write(begin, least, rows, scales);
    }
}

// Adds the squares of A standard coordinates from `first` on, products with rows of a triangle, of a block of steps.
template <int A>
ODECO_INLINE void add_distances(const double* values, const double* triangle, const double* shifts, Index d, Index first,
                                double* distances) {
    for (int s = 0; s < BLOCK; s += 2 * WIDTH<double>) {
        Vec<double> sums[A][2];
        for (int a = 0; a < A; ++a) sums[a][0] = sums[a][1] = repeat(shifts[first + a]);
        for (Index c = 0; c < first + A; ++c) {
            const Vec<double> one = load(values + c * BLOCK + s), two = load(values + c * BLOCK + s + WIDTH<double>);
            for (int a = 0; a < A; ++a) {
                sums[a][0] += triangle[(first + a) * d + c] * one;
                sums[a][1] += triangle[(first + a) * d + c] * two;
            }
        }
        for (int half = 0; half < 2; ++half) {
            double* to = distances + s + half * WIDTH<double>;
            Vec<double> found = load(to);
            for (int a = 0; a < A; ++a) found += sums[a][half] * sums[a][half];
            store(to, found);
        }
    }
}

void full_rows(Rows<const double> values, const double* center, const double* triangles, Rows<const double> shifts,
               const double* constants, double least, Rows<double> rows, double* scales) {
    const Index d = values.width, k = rows.width;
    Block block(d);
    Logs logs(k);
    for (Index begin = 0; begin < rows.n; begin += BLOCK) {
        block.read(values, center, begin);
        for (Index j = 0; j < k; ++j) {
            double* found = logs[j];
            const double* triangle = triangles + j * d * d;
            for (int s = 0; s < BLOCK; ++s) found[s] = 0;
            Index first = 0;
            for (; first + 4 <= d; first += 4) add_distances<4>(block.values, triangle, shifts[j], d, first, found);
            for (; first < d; ++first) add_distances<1>(block.values, triangle, shifts[j], d, first, found);
            for (int s = 0; s < BLOCK; ++s) found[s] = constants[j] - 0.5 * found[s];
        }
        logs.write(begin, least, rows, scales);
    }
}

// Steps of a block of full sums: long beside the sums over the lanes of a register that end it.
constexpr Index LENGTH = 8 * BLOCK, STRIDE = LENGTH + 16;  // rows a whole page apart would share their places in the cache

void full_sums(Rows<const double> values, const double* center, Rows<const double> weights, double* totals,
               double* first, double* second) {
    const Index d = values.width, k = weights.width;
    Scratch<double> columns((d + RIGHT) * STRIDE), products((d + RIGHT) * STRIDE), shares(k * STRIDE);
    for (Index begin = 0; begin < weights.n; begin += LENGTH) {
        const Index there = smaller<Index>(LENGTH, weights.n - begin), size = RowShape<double>(there).padded();
        for (Index c = 0; c < d; ++c)
            for (Index s = 0; s < size; ++s) {
                const double value = s < there ? values[begin + s][c] - center[c] : 0.0;
                columns[c * STRIDE + s] = value == value ? value : 0.0;
            }
        for (Index j = 0; j < k; ++j) {
            for (Index s = 0; s < size; ++s) shares[j * STRIDE + s] = s < there ? weights[begin + s][j] : 0.0;
            totals[j] += sum_of<double>(shares + j * STRIDE, size);
        }
        add_inner<double>(shares, k, columns, d, STRIDE, size, [&](Index j) { return first + j * d; });
        add_crossed<double>(shares, k, columns, d, STRIDE, size, products, second);
    }
    mirror(second, k, d);
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

const GaussianKernels gaussian{diagonal_rows, diagonal_sums, full_rows, full_sums};

}  // namespace odeco::ODECO_ISA
