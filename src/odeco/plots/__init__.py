"""Figures of fitted models on matplotlib: every function takes ``ax=None`` and returns the axes it drew on.

The numbers of a figure come from plain functions (`spectrum`, `relevance`, `topic_map`, `profiles`, ...) that need no
matplotlib and that the HTML report uses too: both show the same. matplotlib is loaded by the first figure, and is not
needed to install odeco: ``pip install 'odeco[plots]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odeco.plots.chains import decoded_sequence, transitions
    from odeco.plots.columns import profiles, view_profiles
    from odeco.plots.crowds import annotators
    from odeco.plots.documents import topic_use
    from odeco.plots.draw_choice import plot_choice
    from odeco.plots.draw_components import plot_confusion, plot_profiles, plot_reliability, plot_samples
    from odeco.plots.draw_fit import plot_convergence, plot_spectrum
    from odeco.plots.draw_sequences import plot_emissions, plot_mixing, plot_sequence, plot_sources, plot_transitions
    from odeco.plots.draw_topics import plot_topic_map, plot_topics, plot_words
    from odeco.plots.fit import convergence, spectrum
    from odeco.plots.samples import membership, scatter
    from odeco.plots.signals import mixing, source_series
    from odeco.plots.topics import relevance, topic_distances, topic_map, topic_shares

_PLACES = {
    "draw_fit": ("plot_spectrum", "plot_convergence"),
    "draw_choice": ("plot_choice",),
    "draw_topics": ("plot_topics", "plot_words", "plot_topic_map"),
    "draw_components": ("plot_profiles", "plot_samples", "plot_confusion", "plot_reliability"),
    "draw_sequences": ("plot_transitions", "plot_emissions", "plot_sequence", "plot_mixing", "plot_sources"),
    "fit": ("spectrum", "convergence"),
    "topics": ("relevance", "topic_shares", "topic_distances", "topic_map"),
    "documents": ("topic_use",),
    "columns": ("profiles", "view_profiles"),
    "samples": ("membership", "scatter"),
    "chains": ("transitions", "decoded_sequence"),
    "crowds": ("annotators",),
    "signals": ("mixing", "source_series"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "plot_spectrum",
    "plot_convergence",
    "plot_choice",
    "plot_topics",
    "plot_words",
    "plot_topic_map",
    "plot_profiles",
    "plot_samples",
    "plot_confusion",
    "plot_reliability",
    "plot_transitions",
    "plot_emissions",
    "plot_sequence",
    "plot_mixing",
    "plot_sources",
    "spectrum",
    "convergence",
    "relevance",
    "topic_shares",
    "topic_distances",
    "topic_map",
    "topic_use",
    "profiles",
    "view_profiles",
    "membership",
    "scatter",
    "transitions",
    "decoded_sequence",
    "annotators",
    "mixing",
    "source_series",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"odeco.plots.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'odeco.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
