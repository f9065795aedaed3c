"""Three views made one: Theorem 3.6 and its recovery, with a least-squares polish where data are noisy."""

from __future__ import annotations

from odeco.moments.views import PAIRS, ThreeViews
from odeco.symmetrization.groups import three_groups
from odeco.symmetrization.recovery import ViewComponents, recover_views
from odeco.symmetrization.theorem import common_bases

__all__ = ["PAIRS", "ThreeViews", "ViewComponents", "common_bases", "recover_views", "three_groups"]
