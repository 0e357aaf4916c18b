"""scikit-learn's way in: `from primexmc.sklearn import PrimeClassifier`."""

from .classifier import PrimeClassifier as PrimeClassifier

__all__ = ["PrimeClassifier"]
