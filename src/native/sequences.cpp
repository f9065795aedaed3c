// Loops over consecutive symbols and states, and plane rotations for joint diagonalization.
#include <math.h>

#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

// Positions of the steps in the order of their middle symbols: those of symbol m are order[ends[m]] to order[ends[m + 1]].
void sort_by_symbol(const std::int32_t* symbols, Index size, Index n_symbols, Index* ends, Index* place, Index* order) {
    for (Index t = 0; t < size; ++t) ++ends[symbols[t] + 1];
    for (Index m = 0; m < n_symbols; ++m) ends[m + 1] += ends[m];
    for (Index m = 0; m < n_symbols; ++m) place[m] = ends[m];
    for (Index t = 0; t < size; ++t) order[place[symbols[t]]++] = t;
}

// The pairs around one middle symbol are summed first: 2 n r^2 operations and r^3 for each symbol, not n r^3.
void add_triples(Span<const std::int32_t> before, const std::int32_t* middle, const std::int32_t* after,
                 Span<const double> weights, Rows<const double> basis, double* core) {
    const Index n_symbols = basis.n, r = basis.width;
    Scratch<Index> ends(n_symbols + 1), place(n_symbols), order(before.size);
    sort_by_symbol(middle, before.size, n_symbols, ends, place, order);
    Scratch<double> around(r * r);
    for (Index m = 0; m < n_symbols; ++m) {
        if (ends[m] == ends[m + 1]) continue;
        for (Index i = 0; i < r * r; ++i) around[i] = 0;
        for (Index p = ends[m]; p < ends[m + 1]; ++p) {
            const Index t = order[p];
            const double *left = basis[before[t]], *right = basis[after[t]], weight = weights.size ? weights[t] : 1.0;
            for (Index a = 0; a < r; ++a) {
                double *sums = around + a * r, factor = weight * left[a];
                for (Index c = 0; c < r; ++c) sums[c] += factor * right[c];
            }
        }
        for (Index a = 0; a < r; ++a)
            for (Index b = 0; b < r; ++b) {
                double *sums = core + (a * r + b) * r, factor = basis[m][b];
                for (Index c = 0; c < r; ++c) sums[c] += factor * around[a * r + c];
            }
    }
}

void products_at(Span<const std::int32_t> rows, const std::int32_t* columns, Rows<const double> left,
                 Rows<const double> right, double* out) {
    RowShape<double> shape(left.width);
    for (Index p = 0; p < rows.size; ++p) {
        const double *first = left[rows[p]], *second = right[columns[p]];
        Vec<double> parts{};
        for (Index i = 0; i < shape.count; ++i)
            parts += load(first, i, shape.count, shape.tail) * load(second, i, shape.count, shape.tail);
        out[p] = total<double>(parts);
    }
}

// A Markov chain by inversion.
void walk(Rows<const double> levels, const double* uniforms, Index state, Span<std::int64_t> out) {
    const Index last = levels.width - 1;
    for (Index t = 0; t < out.size; ++t) {
        const double* row = levels[state];
        const double level = uniforms[t] * row[last];
        Index next = 0;
        while (next < last && row[next] <= level) ++next;
        out[t] = state = next;
    }
}

ODECO_INLINE void rotate(double* first, double* second, double cosine, double sine, Index m) {
    for (Index l = 0; l < m; ++l) {
        const double a = first[l], b = second[l];
        first[l] = cosine * a + sine * b;
        second[l] = cosine * b - sine * a;
    }
}

// The angle minimises the sum of squared (p, q) entries after the rotation: the leading eigenvector of the 2 x 2 matrix
// sum_l h_l h_l', h_l = (A_pp - A_qq, 2 A_pq).
double best_angle(const double* pp, const double* qq, const double* pq, Index m) {
    double on = 0, off = 0, cross = 0;
    for (Index l = 0; l < m; ++l) {
        const double difference = pp[l] - qq[l], twice = 2 * pq[l];
        on += difference * difference;
        off += twice * twice;
        cross += difference * twice;
    }
    return 0.5 * atan2(2 * cross, on - off + hypot(on - off, 2 * cross));
}

double jacobi_sweep(double* stack, double* frame, Index n, Index m) {
    auto entry = [&](Index i, Index j) { return stack + (i * n + j) * m; };
    double largest = 0;
    for (Index p = 0; p < n - 1; ++p)
        for (Index q = p + 1; q < n; ++q) {
            const double theta = best_angle(entry(p, p), entry(q, q), entry(p, q), m);
            const double sine = sin(theta), cosine = cos(theta);
            largest = larger(largest, fabs(sine));
            if (fabs(sine) < 1e-15) continue;
            for (Index i = 0; i < n; ++i) rotate(entry(i, p), entry(i, q), cosine, sine, m);
            rotate(entry(p, 0), entry(q, 0), cosine, sine, n * m);
            for (Index i = 0; i < n; ++i) rotate(frame + i * n + p, frame + i * n + q, cosine, sine, 1);
        }
    return largest;
}

}  // namespace

const SequenceKernels sequences{add_triples, products_at, walk, jacobi_sweep};

}  // namespace odeco::ODECO_ISA
