"""Programs in other shapes of code than the rules' own: they crash, or only look odd."""
