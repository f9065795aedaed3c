"""Moments: sums over samples that update, merge and are divided only when read."""

from __future__ import annotations

from odeco.moments.base import Moments
from odeco.moments.dirichlet import DirichletMoments, DirichletTensor, dirichlet_moments
from odeco.moments.implicit import ImplicitTriples
from odeco.moments.triples import ProjectedMoments, WordTriples
from odeco.moments.words import FrequenciesAndPairs, WordFrequencies, WordPairs

__all__ = [
    "DirichletMoments",
    "DirichletTensor",
    "FrequenciesAndPairs",
    "ImplicitTriples",
    "Moments",
    "ProjectedMoments",
    "WordFrequencies",
    "WordPairs",
    "WordTriples",
    "dirichlet_moments",
]
