// The kernels of the best instruction set that this machine has.
#pragma once

#include "kernels.hpp"

namespace odeco {

template <class Real> const SparseKernels<Real>& sparse();
template <class Real> const DocumentKernels<Real>& documents();
template <class Real> const Cvb0Kernels<Real>& cvb0(Index width);  // of the rows of topics
template <class Real> const MixtureKernels<Real>& mixture();
template <class Real> const PosteriorKernels<Real>& posteriors();
template <class From> const RowPosteriorKernels<From>& row_posteriors();
template <class Real> const QuadraticKernels<Real>& quadratic();
template <class From> const ViewKernels<From>& views();
template <class Real> const ScoreKernels<Real>& scores();
template <class From, class Real> const ColumnKernels<From, Real>& columns();
template <class Real> const CubeKernels<Real>& cubes();
template <class Real> const ChannelKernels<Real>& channels();
template <class Real> const CumulantKernels<Real>& cumulants();
const ScoringKernels& scoring();
const ChainKernels& chains();
const ShortChainKernels& short_chains();
const ViterbiKernels& viterbi();
const GaussianKernels& gaussian();
const FeatureKernels& step_features();
const TableKernels& tables();
const SplineKernels& splines();
const FrameKernels& frames();
const SequenceKernels& sequences();

// "baseline", "x86-64-v3" or "x86-64-v4".
const char* instruction_set();

}  // namespace odeco
