// Products of three coordinates, one of each of three blocks of samples, added up.
#include "inner.hpp"
#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index CACHED = 256 * 1024;       // bytes of some samples: part of the second-level cache
constexpr Index LEAST = 256, MOST = 1024;  // samples at a time: what is added up at their end costs little beside them

// Some samples of a block in columns, zeros behind them up to whole registers.
template <class Real> struct Columns {
    Rows<const Real> rows;
    Index k, stride;
    Scratch<Real> data;

    // Tiles read beyond the last column, what they find there is not used. A register more than the samples lie between
    // columns: at a whole page all would share their places in the cache.
    Columns(Rows<const Real> rows_, Index k_, Index length)
        : rows(rows_), k(k_), stride(length + WIDTH<Real>), data((k + RIGHT) * stride) {}

    ODECO_INLINE const Real* operator[](Index j) const { return data + j * stride; }
    ODECO_INLINE void fill(Index start, Index stop) {
        each_column<Real>(rows, k, start, stop, static_cast<const Real*>(nullptr),
                          [&](Index j, Index i, Vec<Real> value) __attribute__((always_inline)) {
                              store(data + j * stride + i, value);
                          });
    }
};

template <class Real> void add_cubes(const CubeSamples<Real>& of, double* sums) {
    const Index k1 = of.k[0], k2 = of.k[1], k3 = of.k[2], n = of.first.n;
    const bool same12 = of.first.data == of.second.data, same23 = of.second.data == of.third.data;
    const Index width = k1 + (same12 ? 0 : k2) + (same23 ? 0 : k3);
    const Index fitting = CACHED / Index(sizeof(Real)) / width / 64 * 64;
    const Index length = smaller<Index>(larger<Index>(smaller<Index>(fitting, MOST), LEAST), (n + 63) / 64 * 64);
    Columns<Real> first(of.first, k1, length), own2(of.second, same12 ? 0 : k2, length), own3(of.third, same23 ? 0 : k3, length);
    const Columns<Real>&second = same12 ? first : own2, &third = same23 ? second : own3;
    Scratch<Real> weights(length), weighted(length), pairs(LEFT * first.stride);
    for (Index start = 0; start < n; start += length) {
        const Index stop = smaller(start + length, n), size = RowShape<Real>(stop - start).padded();
        first.fill(start, stop);
        own2.fill(start, stop);
        own3.fill(start, stop);
        for (Index t = start; t < stop; ++t) weights[t - start] = of.weights.size > 0 ? Real(of.weights[t]) : Real(1);
        for (Index a = 0; a < k1; ++a) {
            multiply<Real>(first[a], weights, size, weighted);
            for (Index b = same12 ? a : 0; b < k2; b += LEFT) {
                const Index many = smaller<Index>(LEFT, k2 - b), from = same23 ? b : 0;
                for (Index i = 0; i < many; ++i) multiply<Real>(weighted, second[b + i], size, pairs + i * first.stride);
                add_inner<Real>(static_cast<const Real*>(pairs), many, third[from], k3 - from, first.stride, size,
                                [&](Index i) { return sums + (a * k2 + b + i) * k3 + from; });
            }
        }
    }
}

}  // namespace

const CubeKernels<float> cubes32{add_cubes<float>};
const CubeKernels<double> cubes64{add_cubes<double>};

}  // namespace odeco::ODECO_ISA
