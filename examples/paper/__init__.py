"""The paper's statements as figures: `python -m examples.paper` measures, stores and draws all of them."""
