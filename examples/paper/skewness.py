"""Section 4.3.2: every local maximum of the (cross moment) skewness of documents is a topic."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import odeco
from odeco.simulate import single_topic_documents
from odeco.tensors import ExplicitTensor, rank_one_sum
from odeco.theory import is_isolated_maximizer
from odeco.whitening.whitener import whiten

TITLE = "Isolated maxima of the skewness"
PLACE = "Theorem 4.2 and section 4.3.2"
TOPICS = np.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.5, 0.2, 0.1], [0.1, 0.3, 0.0, 0.1, 0.5]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
GRID = (181, 91)  # longitudes, latitudes
DOCUMENTS = 20_000


def measure(quick: bool = False) -> dict[str, Any]:
    """Skewness on the sphere of whitened directions, its eigenvectors, and what a sample of documents finds."""
    pairs = (TOPICS.T * WEIGHTS) @ TOPICS
    whitener = whiten(pairs, 3)
    whitened = np.sqrt(WEIGHTS) * (whitener.matrix.T @ TOPICS.T)  # orthonormal columns
    values = 1 / np.sqrt(WEIGHTS)
    tensor = rank_one_sum(values, whitened)
    longitude, latitude = np.meshgrid(np.linspace(-np.pi, np.pi, GRID[0]), np.linspace(-np.pi / 2, np.pi / 2, GRID[1]))
    directions = _direction(longitude, latitude).reshape(3, -1)
    skewness = ExplicitTensor(tensor).values(directions).reshape(longitude.shape)
    points = []
    for size in (1, 2, 3):  # eigenvectors of an odeco tensor: sums of v_i / lambda_i over subsets
        for subset in combinations(range(3), size):
            vector = whitened[:, subset] @ (1 / values[list(subset)])
            vector /= np.linalg.norm(vector)
            points.append({"place": _place(vector), "maximum": is_isolated_maximizer(tensor, vector), "size": size})
    counts = single_topic_documents(2_000 if quick else DOCUMENTS, TOPICS, WEIGHTS, random_state=0).counts
    model = odeco.SingleTopicModel(3, refine=None, random_state=0).fit(counts)
    estimates = np.sqrt(model.weights_) * (whitener.matrix.T @ model.components_.T)
    return {
        "skewness": skewness,
        "points": points,
        "estimates": [_place(vector) for vector in estimates.T],
        "topic error": odeco.metrics.match_components(model.components_.T, TOPICS.T).largest,
        "largest skewness": float(values.max()),
        "documents": counts.shape[0],
    }


def _direction(longitude: Any, latitude: Any) -> Any:
    return np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])


def _place(vector: Any) -> list[float]:
    """Longitude and latitude."""
    x, y, z = vector / np.linalg.norm(vector)
    return [float(np.arctan2(y, x)), float(np.arcsin(z))]


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(8, 4.2)
    axes = figure.add_subplot(projection="mollweide")
    longitude, latitude = np.linspace(-np.pi, np.pi, GRID[0]), np.linspace(-np.pi / 2, np.pi / 2, GRID[1])
    values = np.array(result["skewness"])
    levels = np.linspace(values.min(), values.max(), 21)
    axes.grid(visible=False)
    shades = axes.contourf(longitude, latitude, values, levels=levels)
    axes.contour(longitude, latitude, values, levels=levels, colors="white", linewidths=0.3)
    for marker, color, name, wanted in (
        ("o", "C1", "isolated maxima: the topics", True),
        ("X", "white", "other eigenvectors", False),
    ):
        places = np.array([point["place"] for point in result["points"] if point["maximum"] is wanted])
        axes.plot(*places.T, marker, color=color, markersize=9, markeredgecolor="black", linestyle="none", label=name)
    axes.plot(*np.array(result["estimates"]).T, "+", color="black", markersize=13, linestyle="none",
              label=f"found in {result['documents']:,} documents")  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    figure.colorbar(shades, ax=axes, shrink=0.7, label="skewness along a direction", format="%.1f")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3)
    axes.set_title("Skewness of whitened words over all directions, three topics", pad=12)


def caption(result: dict[str, Any]) -> str:
    maxima = sum(point["maximum"] for point in result["points"])
    return (
        f"Words of documents on three topics, whitened: the skewness of every direction on the sphere. Of the "
        f"{len(result['points'])} eigenvectors with positive eigenvalue, the second-derivative test of Theorem 4.2 "
        f"tells {maxima} as isolated maxima, the topics; the others are saddles and a minimum. {result['documents']:,} "
        f"documents find the topics to {result['topic error']:.3f} (largest Euclidean distance)."
    )
