"""The tests, in the same tree as `src/gradwright`."""
