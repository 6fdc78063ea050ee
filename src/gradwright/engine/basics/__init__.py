"""Small steps that all routes are made of: one call into autograd, sums, products, writing."""
