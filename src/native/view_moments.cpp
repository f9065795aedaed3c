// Cross moments of views in three groups, each seen through a few directions: a block of samples is read once.
#include "inner.hpp"
#include "row_blocks.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index CACHED = 256 * 1024;       // bytes of a block and of what is made of it: part of the second-level cache
constexpr Index LEAST = 128, MOST = 1024;  // samples of a block
constexpr int OUTPUTS = 4;                 // coordinates that are computed side by side

// out[j] += sum_q directions[q, j] columns[q] for r coordinates.
ODECO_INLINE void project(const double* columns, Index d, const double* directions, Index r, Index stride, Index size,
                          double* out) {
    for (Index j = 0; j < r; j += OUTPUTS)
        for (Index t = 0; t < size; t += WIDTH<double>) {
            const int many = int(smaller<Index>(OUTPUTS, r - j));
            Vec<double> sums[OUTPUTS]{};
            for (int a = 0; a < many; ++a) sums[a] = load(out + (j + a) * stride + t);
            for (Index q = 0; q < d; ++q) {
                const Vec<double> value = load(columns + q * stride + t);
                const double* row = directions + q * r + j;
                for (int a = 0; a < many; ++a) sums[a] += row[a] * value;
            }
            for (int a = 0; a < many; ++a) store(out + (j + a) * stride + t, sums[a]);
        }
}

template <class From> struct ViewBlock {
    const ViewSamples<From>& of;
    Index p = 0, r = 0, first[3], stride;
    Scratch<double> weights, columns, y, weighted, pairs;

    // Tiles read beyond the last row of a group, what they find there is not used.
    ViewBlock(const ViewSamples<From>& of_, Index p_, Index length)
        : of(of_), p(p_), r(of.ranks[0] + of.ranks[1] + of.ranks[2]), first{0, of.ranks[0], of.ranks[0] + of.ranks[1]},
          stride(length + WIDTH<double>), weights(stride), columns((p + RIGHT) * stride), y((r + RIGHT) * stride),
          weighted((r + RIGHT) * stride), pairs(LEFT * stride) {}

    ODECO_INLINE const double* group(const double* rows, Index g) const { return rows + first[g] * stride; }

    ODECO_INLINE void fill(Index start, Index stop, Index size) {
        fill_features<From, double>(of.blocks, start, stop, {columns, p, stride});
        __builtin_memset(y, 0, r * stride * sizeof(double));
        const double* directions = of.directions;
        Index place = 0;
        for (Index t = 0; t < of.blocks.size; ++t) {
            const Index g = of.groups[t], d = of.blocks[t].d;
            project(columns + place * stride, d, directions, of.ranks[g], stride, size, y + first[g] * stride);
            directions += d * of.ranks[g];
            place += d;
        }
        for (Index t = 0; t < size; ++t)
            weights[t] = start + t >= stop ? 0 : of.weights.size > 0 ? of.weights[start + t] : 1;
        for (Index j = 0; j < r; ++j) multiply<double>(y + j * stride, weights, size, weighted + j * stride);
    }

    ODECO_INLINE void add_cross(Index size, const ViewSums& out) const {
        double* cross = out.cross;
        Index place = 0;
        for (Index t = 0; t < of.blocks.size; ++t) {
            const Index d = of.blocks[t].d;
            for (Index g = 0; g < 3; ++g) {
                if (g == of.groups[t]) continue;
                const Index rank = of.ranks[g];
                add_inner<double>(columns + place * stride, d, group(weighted, g), rank, stride, size,
                                  [&](Index q) { return cross + q * rank; });
                cross += d * rank;
            }
            place += d;
        }
        add_inner<double>(weights, 1, columns, p, stride, size, [&](Index) { return out.first; });
        for (Index j = 0; j < r; ++j) out.projected[j] += sum_of<double>(weighted + j * stride, size);
    }

    ODECO_INLINE void add_triples(Index size, const ViewSums& out) {
        double* pair = out.pairs;
        for (Index g = 0; g < 3; ++g)
            for (Index h = g + 1; h < 3; ++h) {
                const Index rank = of.ranks[h];
                add_inner<double>(group(weighted, g), of.ranks[g], group(y, h), rank, stride, size,
                                  [&](Index i) { return pair + i * rank; });
                pair += of.ranks[g] * rank;
            }
        const Index r2 = of.ranks[1], r3 = of.ranks[2];
        for (Index a = 0; a < of.ranks[0]; ++a)
            for (Index b = 0; b < r2; b += LEFT) {
                const Index many = smaller<Index>(LEFT, r2 - b);
                for (Index i = 0; i < many; ++i)
                    multiply<double>(weighted + a * stride, group(y, 1) + (b + i) * stride, size, pairs + i * stride);
                add_inner<double>(pairs, many, group(y, 2), r3, stride, size,
                                  [&](Index i) { return out.triples + (a * r2 + b + i) * r3; });
            }
    }
};

template <class From> void add_views(const ViewSamples<From>& of, Range range, const ViewSums& out) {
    Index p = 0;
    for (Index t = 0; t < of.blocks.size; ++t) p += of.blocks[t].d;
    const Index width = p + 2 * (of.ranks[0] + of.ranks[1] + of.ranks[2]);
    const Index fitting = CACHED / Index(sizeof(double)) / width / 16 * 16;
    const Index length = smaller(larger(fitting, LEAST), MOST);
    ViewBlock<From> block(of, p, length);
    for (Index start = range.start; start < range.stop; start += length) {
        const Index stop = smaller(start + length, range.stop), size = RowShape<double>(stop - start).padded();
        block.fill(start, stop, size);
        fetch_rows<From>(of.blocks, stop, smaller(stop + length, range.stop));
        block.add_cross(size, out);
        if (out.triples) block.add_triples(size, out);
    }
}

}  // namespace

const ViewKernels<float> views32{add_views<float>};
const ViewKernels<double> views64{add_views<double>};

}  // namespace odeco::ODECO_ISA
