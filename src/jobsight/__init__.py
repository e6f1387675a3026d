"""jobsight shows people what their compute jobs really did."""

__version__ = "0.1.0"
