"""Words, answers and measurements of the same samples: three views that differ in all but the hidden class.

No view tells the classes apart by itself; together they do.

Run ``python examples/multiview_kinds.py``; ``--figure kinds.png`` (needs ``odeco[plots]``) draws it.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import sparse

from odeco import MultiViewMixture

Array = np.ndarray
NAMES = ("words", "answers", "measurements")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="draw the posteriors into this file")
    figure = parser.parse_args().figure
    views, labels = simulate(10_000)
    model = MultiViewMixture(4, random_state=0).fit(views)
    print(f"{len(labels):,} samples\n\n{model.diagnostics_}\n")
    for name, view, likelihood, coherence in zip(
        NAMES, views, model.likelihoods_, model.diagnostics_.details["coherence"], strict=True
    ):
        print(f"{name:13s} {view.shape[1]:4d} columns  {likelihood:12s} coherence {coherence:.2f}")
    table = confusion(labels, model.predict(views))
    print(f"\nin the right component: {100 * table.max(axis=1).sum() / len(labels):.1f} %")
    if figure:
        draw(figure, model, views, labels)
        print(f"Figure written to {figure}.")


def simulate(n: int) -> tuple[list, Array]:
    """Four classes; each view has two of them in common, but for a little."""
    rng = np.random.default_rng(0)
    labels = rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])
    words = rng.dirichlet(np.full(200, 0.3), 4)
    words[1] = 0.85 * words[0] + 0.15 * words[1]
    answers = rng.uniform(0.1, 0.9, (4, 12))
    answers[2] = answers[1] + 0.15 * (answers[2] - answers[1])
    means = 1.2 * rng.standard_normal((4, 6))
    means[3] = means[2] + 0.2 * (means[3] - means[2])
    counts = np.array([rng.multinomial(25, words[i]) for i in labels])
    given = (rng.random((n, 12)) < answers[labels]).astype(np.float64)
    return [sparse.csr_array(counts), given, means[labels] + rng.standard_normal((n, 6))], labels


def confusion(labels: Array, found: Array) -> Array:
    table = np.zeros((4, 4), dtype=int)
    np.add.at(table, (labels, found), 1)
    return table


def alone(model: MultiViewMixture, views: list, kept: int) -> Array:
    """Posteriors from one view of the fitted model: the others are replaced by what says nothing."""
    other = MultiViewMixture(4).set_params(**model.get_params())
    other.__dict__.update(model.__dict__)
    other.means_ = [
        mean if t == kept else np.tile(model.weights_ @ mean, (4, 1)) for t, mean in enumerate(model.means_)
    ]
    other.variances_ = [
        v if v is None or t == kept else np.tile(model.weights_ @ v, (4, 1)) for t, v in enumerate(model.variances_)
    ]
    return other.predict_proba(views)


def draw(path: str, model: MultiViewMixture, views: list, labels: Array) -> None:
    """Posteriors of samples of each class, from one view alone and from all."""
    from matplotlib.figure import Figure

    chosen = np.concatenate([np.flatnonzero(labels == c)[:60] for c in range(4)])
    panels = [(f"{name} alone", alone(model, views, t)) for t, name in enumerate(NAMES)]
    panels.append(("all three", model.predict_proba(views)))
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    for axes, (name, shares) in zip(figure.subplots(1, 4, sharey=True), panels, strict=True):
        axes.imshow(shares[chosen], aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=name, xlabel="component", xticks=range(4), yticks=[30, 90, 150, 210])
        axes.set_yticklabels([f"class {c}" for c in range(4)])
        for edge in (59.5, 119.5, 179.5):
            axes.axhline(edge, color="tab:red", linewidth=0.6)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
