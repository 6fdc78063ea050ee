"""The exact ways from losses to gradients, and the choice among them."""
