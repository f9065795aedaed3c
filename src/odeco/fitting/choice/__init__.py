"""How many components: fits of one estimator for several numbers of them, judged side by side."""
