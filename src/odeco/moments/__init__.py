"""Moments: sums over samples that update, merge and are divided only when read.

For a model of your own:

- from arrays: `fourth_cumulant` (Theorem 3.4), `dirichlet_moments` (Theorem 3.5), `view_moments` (section 3.3);
- sums of your own: a subclass of `Additive`, several as one by `Together`; `Moments` keeps a basis with them;
- sums of rows of numbers: `SecondMoments`, `FourthMoments`, and `CumulantTensor`, which is never formed;
- sums of views: `ViewMoments` on a `ViewBasis`, read as `ThreeViews`;
- sums of documents: `WordFrequencies`, `WordPairs`, `FrequenciesAndPairs`, `WordTriples`, read as `ProjectedMoments`;
  `ImplicitTriples` and `DirichletTensor`, which are never formed;
- passes over a source that fill them: `run_passes`, and `fill` for a single one.
"""

from __future__ import annotations

from odeco.moments.base import Additive, Moments, Together
from odeco.moments.cumulants import CumulantTensor, FourthMoments, SecondMoments, fourth_cumulant
from odeco.moments.dirichlet import DirichletMoments, DirichletTensor, dirichlet_moments
from odeco.moments.implicit import ImplicitTriples
from odeco.moments.passes import fill, run_passes
from odeco.moments.triples import ProjectedMoments, WordTriples
from odeco.moments.views import ThreeViews, ViewBasis, ViewMoments, view_moments
from odeco.moments.words import FrequenciesAndPairs, WordFrequencies, WordPairs

__all__ = [
    "Additive",
    "CumulantTensor",
    "DirichletMoments",
    "DirichletTensor",
    "FourthMoments",
    "FrequenciesAndPairs",
    "ImplicitTriples",
    "Moments",
    "ProjectedMoments",
    "SecondMoments",
    "ThreeViews",
    "Together",
    "ViewBasis",
    "ViewMoments",
    "WordFrequencies",
    "WordPairs",
    "WordTriples",
    "dirichlet_moments",
    "fill",
    "fourth_cumulant",
    "run_passes",
    "view_moments",
]
