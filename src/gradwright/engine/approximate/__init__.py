"""Ways to a Gramian that is nearly right, and to the error that this makes."""
