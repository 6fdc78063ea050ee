"""The steps of the kinds of weightings that read gradients: from losses to `.grad`."""
