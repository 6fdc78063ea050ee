"""A window as accumulated and in one piece, compared."""
