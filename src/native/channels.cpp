// Narrow rows of numbers, each read once: their second moments about an origin, and their coordinates on a basis.
//
// Products of so few columns are too small for BLAS, and what is centred for it goes through memory once more.
#include "inner.hpp"
#include "kernels.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index BYTES = 65536;  // of numbers at a time: they stay in the second-level cache

// The centred numbers of some rows, one column after the other.
template <class Real> struct Columns {
    Index d, length, stride, padded = 0;
    Scratch<Real> values;

    // A stride that is no power of two: else all columns would meet in one place of the cache. Rows behind are read.
    explicit Columns(Index d_)
        : d(d_), length(larger<Index>(BYTES / Index(d * sizeof(Real)) / WIDTH<Real>, 2) * WIDTH<Real>),
          stride(length + WIDTH<Real>), values((d + RIGHT) * stride) {}

    ODECO_INLINE Real* operator[](Index j) const { return values + j * stride; }

    // Of the rows from `start` on, centred in the precision of `origin`, zeros behind them up to whole registers.
    template <class Given, class Origin>
    ODECO_INLINE void fill(Rows<const Given> rows, Index start, Index size, const Origin* origin) {
        for (Index t = 0; t < size; ++t) {
            const Given* row = rows[start + t];
            for (Index j = 0; j < d; ++j) values[j * stride + t] = Real(Origin(row[j]) - origin[j]);
        }
        padded = RowShape<Real>(size).padded();
        for (Index j = 0; j < d; ++j)
            for (Index t = size; t < padded; ++t) values[j * stride + t] = 0;
    }
};

// Sums of columns, of their products above the diagonal (and some below), and of weights.
struct Products {
    Index d;
    double weight = 0;
    Scratch<double> first, second;

    explicit Products(Index d_) : d(d_), first(d), second(d * d) {}

    // `left` are the columns by their weights.
    ODECO_INLINE void add(const Columns<double>& columns, const Columns<double>& left) {
        for (Index j = 0; j < d; ++j) {
            Vec<double> sum{};
            for (Index t = 0; t < columns.padded; t += WIDTH<double>) sum += load(left[j] + t);
            first[j] += total<double>(sum);
        }
        for (Index a = 0; a < d; a += LEFT)
            add_inner<double>(left[a], smaller<Index>(LEFT, d - a), columns[a], d - a, columns.stride, columns.padded,
                              [&](Index i) { return second + (a + i) * d + a; });
    }

    ODECO_INLINE void weigh(const Columns<double>& columns, const double* weights, Index size, Columns<double>& out) {
        for (Index t = 0; t < size; ++t) weight += weights[t];
        for (Index j = 0; j < d; ++j) {
            for (Index t = 0; t < size; ++t) out[j][t] = weights[t] * columns[j][t];
            for (Index t = size; t < columns.padded; ++t) out[j][t] = 0;
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
    Columns<double> columns(rows.width), weighted(rows.width);
    Products products(rows.width);
    for (Index start = 0; start < rows.n; start += columns.length) {
        const Index size = smaller(columns.length, rows.n - start);
        columns.fill(rows, start, size, origin);
        if (weights.size > 0) products.weigh(columns, weights.data + start, size, weighted);
        products.add(columns, weights.size > 0 ? weighted : columns);
    }
    if (weights.size == 0) products.weight = double(rows.n);
    products.add_to(out);
}

template <class Given, class Real>
void whiten_rows(Rows<const Given> rows, const Given* origin, Rows<const Real> turn, Index start, Rows<Real> out) {
    Columns<Real> columns(rows.width);
    for (Index first = 0; first < rows.n; first += columns.length) {
        const Index size = smaller(columns.length, rows.n - first);
        columns.fill(rows, first, size, origin);
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
