// Products of three coordinates, one of each of three blocks of samples, added up.
#include "inner.hpp"
#include "kernels.hpp"
#include "transpose.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr Index CACHED = 256 * 1024;       // bytes of some samples: part of the second-level cache
constexpr Index LEAST = 256, MOST = 1024;  // samples at a time: what is added up at their end costs little beside them

template <class Real> void add_cubes(const CubeSamples<Real>& of, double* sums) {
    const Index k1 = of.k[0], k2 = of.k[1], k3 = of.k[2], n = of.first.n;
    const bool same12 = of.first.data == of.second.data, same23 = of.second.data == of.third.data;
    const Index width = k1 + (same12 ? 0 : k2) + (same23 ? 0 : k3);
    const Index fitting = CACHED / Index(sizeof(Real)) / width / 64 * 64;
    const Index length = smaller<Index>(larger<Index>(smaller<Index>(fitting, MOST), LEAST), (n + 63) / 64 * 64);
    Columns<Real> first(k1, length, RIGHT), own2(same12 ? 0 : k2, length, RIGHT), own3(same23 ? 0 : k3, length, RIGHT);
    const Columns<Real>&second = same12 ? first : own2, &third = same23 ? second : own3;
    Scratch<Real> weights(length), weighted(length), pairs(LEFT * first.stride);
    for (Index start = 0; start < n; start += length) {
        const Index stop = smaller(start + length, n), size = first.fill(of.first, start, stop);
        own2.fill(of.second, start, stop);
        own3.fill(of.third, start, stop);
        for (Index t = start; t < stop; ++t) weights[t - start] = of.weights.size > 0 ? Real(of.weights[t]) : Real(1);
        for (Index a = 0; a < k1; ++a) {
            multiply<Real>(first[a], weights, size, weighted);
            for (Index b = same12 ? a : 0; b < k2; b += LEFT) {
                const Index many = smaller<Index>(LEFT, k2 - b), from = same23 ? b : 0;
                for (Index i = 0; i < many; ++i) multiply<Real>(weighted, second[b + i], size, pairs + i * first.stride);
                add_inner<Real>(static_cast<const Real*>(pairs), many, static_cast<const Real*>(third[from]), k3 - from, first.stride, size,
                                [&](Index i) { return sums + (a * k2 + b + i) * k3 + from; });
            }
        }
    }
}

}  // namespace

const CubeKernels<float> cubes32{add_cubes<float>};
const CubeKernels<double> cubes64{add_cubes<double>};

}  // namespace odeco::ODECO_ISA
