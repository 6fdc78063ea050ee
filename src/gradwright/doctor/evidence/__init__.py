"""Facts that several rules need, worked out of a crash and its journal."""
