"""What a weighting is, and how it is asked for weights."""
