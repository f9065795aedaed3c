"""The laws of observations given a component: densities, sums, M steps, free parameters, draws, each written once."""
