// Narrow rows of numbers, each read once: their second moments about an origin, and their coordinates on a basis.
//
// Products of so few columns are too small for BLAS, and what is centred for it goes through memory once more.
#include "inner.hpp"
#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index BYTES = 65536;  // of numbers at a time: they stay in the second-level cache

// Rows at a time.
template <class Real> ODECO_INLINE Index some_rows(Index d) {
    return larger<Index>(BYTES / Index(d * sizeof(Real)) / WIDTH<Real>, 2) * WIDTH<Real>;
}

// Sums of columns, of their products above the diagonal (and some below), and of weights.
struct Products {
    Index d;
    double weight = 0;
    Scratch<double> first, second;

    explicit Products(Index d_) : d(d_), first(d), second(d * d) {}

    // `left` are the columns by their weights.
    ODECO_INLINE void add(const Columns<double>& columns, const Columns<double>& left, Index padded) {
        for (Index j = 0; j < d; ++j) first[j] += sum_of<double>(left[j], padded);
        for (Index a = 0; a < d; a += LEFT)
            add_inner<double>(left[a], smaller<Index>(LEFT, d - a), columns[a], d - a, columns.stride, padded,
                              [&](Index i) { return second + (a + i) * d + a; });
    }

    ODECO_INLINE void weigh(const Columns<double>& columns, const double* weights, Index size, Index padded,
                            Columns<double>& out) {
        for (Index t = 0; t < size; ++t) weight += weights[t];
        for (Index j = 0; j < d; ++j) {
            for (Index t = 0; t < size; ++t) out[j][t] = weights[t] * columns[j][t];
            for (Index t = size; t < padded; ++t) out[j][t] = 0;
        }
    }

    ODECO_INLINE void add_to(Rows<double> out) const {
        out[0][0] += weight;
        for (Index i = 0; i < d; ++i) {
            out[0][i + 1] += first[i];
            out[i + 1][0] += first[i];
            for (Index j = 0; j < d; ++j) out[i + 1][j + 1] += second[smaller(i, j) * d + larger(i, j)];
        }
    }
};

template <class Real>
void add_row_products(Rows<const Real> rows, const double* origin, Span<const double> weights, Rows<double> out) {
    const Index d = rows.width, length = some_rows<double>(d);
    Columns<double> columns(d, length, RIGHT), weighted(d, length, RIGHT);
    Products products(d);
    for (Index start = 0; start < rows.n; start += length) {
        const Index stop = smaller(start + length, rows.n), padded = columns.fill(rows, start, stop, origin);
        if (weights.size > 0) products.weigh(columns, weights.data + start, stop - start, padded, weighted);
        products.add(columns, weights.size > 0 ? weighted : columns, padded);
    }
    if (weights.size == 0) products.weight = double(rows.n);
    products.add_to(out);
}

template <class Given, class Real>
void whiten_rows(Rows<const Given> rows, const Given* origin, Rows<const Real> turn, Index start, Rows<Real> out) {
    const Index d = rows.width, length = some_rows<Real>(d);
    Columns<Real> columns(d, length, 0);
    Scratch<Wider<Given, Real>> about(d);
    for (Index j = 0; j < d; ++j) about[j] = origin[j];
    for (Index first = 0; first < rows.n; first += length) {
        const Index size = smaller(length, rows.n - first);
        columns.fill(rows, first, first + size, static_cast<const Wider<Given, Real>*>(about));
        for (Index i = 0; i < turn.n; i += LEFT)
            for (Index t = 0; t < size; t += WIDTH<Real>) {
                Vec<Real> sums[LEFT] = {};
                for (Index j = 0; j < rows.width; ++j) {
                    const Vec<Real> value = load(columns[j] + t);
                    for (int a = 0; a < LEFT; ++a) sums[a] += turn[smaller<Index>(i + a, turn.n - 1)][j] * value;
                }
                const Tail<Real> tail{int(smaller<Index>(WIDTH<Real>, size - t))};
                for (int a = 0; a < LEFT && i + a < turn.n; ++a) tail.store(out[i + a] + start + first + t, sums[a]);
            }
    }
}

}  // namespace

const ChannelKernels<float> channels32{add_row_products<float>, whiten_rows<float, float>, whiten_rows<float, double>};
const ChannelKernels<double> channels64{add_row_products<double>, whiten_rows<double, float>, whiten_rows<double, double>};

}  // namespace odeco::ODECO_ISA
