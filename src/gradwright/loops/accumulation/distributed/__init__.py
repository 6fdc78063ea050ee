"""Several processes: who averages gradients with whom, and how that waits."""
