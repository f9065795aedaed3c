"""odeco: latent variable models by the method of moments and orthogonal tensor decomposition."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from odeco.exceptions import ModelFileError, MomentError, MomentWarning
from odeco.fitting.card import resolve
from odeco.models.cards import OWN

if TYPE_CHECKING:  # for those who read no cards; the names below are for them, too
    from odeco import completion, datasets, metrics, simulate, tensors, theory
    from odeco.decomposition import Decomposition, decompose
    from odeco.fitting.choice.choose import choose_components
    from odeco.fitting.choice.record import Choice
    from odeco.models.dawid_skene.estimator import DawidSkene
    from odeco.models.gaussian_mixture.estimator import GaussianMixture
    from odeco.models.hmm.categorical import CategoricalHMM
    from odeco.models.hmm.gaussian import GaussianHMM
    from odeco.models.hmm.poisson import PoissonHMM
    from odeco.models.ica.estimator import ICA
    from odeco.models.lda.estimator import LatentDirichletAllocation
    from odeco.models.multiview.estimator import MultiViewMixture
    from odeco.models.product_mixture.estimator import ProductMixture
    from odeco.models.single_topic.estimator import SingleTopicModel
    from odeco.persistence import load, save
    from odeco.reduction import decompose_fourth, decompose_moments
    from odeco.uncertainty import Intervals, intervals
    from odeco.whitening.whitener import Whitener, whiten

__version__ = "0.1.0.dev0"

# Loaded when they are first asked for: who fits topics does not wait for what mixtures are made of.
_NAMES = {
    "odeco.fitting.choice.choose": ("choose_components",),
    "odeco.fitting.choice.record": ("Choice",),
    "odeco.whitening.whitener": ("whiten", "Whitener"),
    "odeco.decomposition": ("decompose", "Decomposition"),
    "odeco.reduction": ("decompose_moments", "decompose_fourth"),
    "odeco.persistence": ("save", "load"),
    "odeco.uncertainty": ("intervals", "Intervals"),
}
_ON_DEMAND = {card.class_name: card.estimator for card in OWN}
_ON_DEMAND |= {name: f"{module}:{name}" for module, names in _NAMES.items() for name in names}

_MODULES_ON_DEMAND = (
    "tensors",
    "simulate",
    "datasets",
    "metrics",
    "completion",
    "theory",
    "moments",
    "whitening",
    "decomposition",
    "reduction",
    "plots",
    "report",
)

# In the order of the flow; the estimators in that of their cards.
__all__ = [
    "tensors",
    "simulate",
    "datasets",
    "metrics",
    "completion",
    "theory",
    "moments",
    "whiten",
    "Whitener",
    "decompose",
    "Decomposition",
    "reduction",
    "decompose_moments",
    "decompose_fourth",
    "LatentDirichletAllocation",
    "SingleTopicModel",
    "GaussianMixture",
    "ProductMixture",
    "MultiViewMixture",
    "DawidSkene",
    "CategoricalHMM",
    "GaussianHMM",
    "PoissonHMM",
    "ICA",
    "choose_components",
    "Choice",
    "intervals",
    "Intervals",
    "save",
    "load",
    "plots",
    "report",
    "MomentError",
    "MomentWarning",
    "ModelFileError",
]


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return resolve(_ON_DEMAND[name])
    if name in _MODULES_ON_DEMAND:
        return import_module(f"odeco.{name}")
    raise AttributeError(f"module 'odeco' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND, *_MODULES_ON_DEMAND})
