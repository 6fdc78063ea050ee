"""What the second run of a segment needs to be like the first, and what it adds."""
